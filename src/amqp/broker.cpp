#include "amqp/broker.hpp"

#include <amqp_framing.h>

#include <vector>

namespace claimq::amqp {

namespace {

// Borrows: good for the length of a call. The library does not write to it.
amqp_bytes_t bytes(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

std::vector<amqp_table_entry_t> table_of(std::span<const Argument> arguments) {
    std::vector<amqp_table_entry_t> entries;
    for (const auto& argument : arguments) {
        amqp_table_entry_t entry{};
        entry.key = bytes(argument.name);
        entry.value.kind = AMQP_FIELD_KIND_UTF8;
        entry.value.value.bytes = bytes(argument.value);
        entries.push_back(entry);
    }
    return entries;
}

}  // namespace

std::optional<Refusal> Broker::answer() {
    auto refused = refusal(amqp_get_rpc_reply(connection_.state()));
    if (refused) {
        amqp_channel_close_ok_t ok{};
        connection_.send_method(AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
        connection_.open_channel();
    }
    amqp_maybe_release_buffers_on_channel(connection_.state(), channel);
    return refused;
}

std::optional<Refusal> Broker::look_up_exchange(std::string_view name) {
    amqp_exchange_declare(connection_.state(), channel, bytes(name), bytes("direct"), 1, 1, 0, 0, amqp_empty_table);
    return answer();
}

std::optional<Refusal> Broker::look_up_queue(std::string_view name) {
    amqp_queue_declare(connection_.state(), channel, bytes(name), 1, 1, 0, 0, amqp_empty_table);
    return answer();
}

std::optional<Refusal> Broker::declare_exchange(std::string_view name) {
    amqp_exchange_declare(connection_.state(), channel, bytes(name), bytes("direct"), 0, 1, 0, 0, amqp_empty_table);
    return answer();
}

std::optional<Refusal> Broker::declare(const Queue& queue) {
    auto entries = table_of(queue.arguments);
    const amqp_table_t arguments{static_cast<int>(entries.size()), entries.data()};
    amqp_queue_declare(connection_.state(), channel, bytes(queue.name), 0, 1, 0, 0, arguments);
    return answer();
}

std::optional<Refusal> Broker::bind(const Binding& binding) {
    amqp_queue_bind(connection_.state(), channel, bytes(binding.queue), bytes(binding.exchange),
                    bytes(binding.routing_key), amqp_empty_table);
    return answer();
}

std::optional<Refusal> Broker::limit_unacked(std::uint16_t prefetch) {
    amqp_basic_qos(connection_.state(), channel, 0, prefetch, 0);
    return answer();
}

std::optional<Refusal> Broker::consume(std::string_view queue) {
    amqp_basic_consume(connection_.state(), channel, bytes(queue), bytes(consumer_tag), 0, 0, 0, amqp_empty_table);
    return answer();
}

}  // namespace claimq::amqp
