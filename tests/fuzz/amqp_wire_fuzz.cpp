// What a broker's bytes become, through rabbitmq-c's decoder as Connection::take() uses it: bounded values or a broken
// protocol, and the same however the bytes were cut on their way.
//
// The input is a row of frames: type, channel, two bytes of length, payload; a type above 0x7F is an unframed piece,
// sent as it is.
#include <amqp.h>

#include <memory>
#include <string>
#include <vector>

#include "amqp/incoming.hpp"
#include "claimq/failure.hpp"
#include "described.hpp"
#include "property.hpp"

namespace claimq::amqp {
namespace {

using fuzz::must;

struct Destroy {
    void operator()(amqp_connection_state_t state) const noexcept { amqp_destroy_connection(state); }
};
using State = std::unique_ptr<amqp_connection_state_t_, Destroy>;

std::string framed(std::string_view input) {
    std::string wire;
    for (fuzz::Choices choices(input); !choices.none_left();) {
        const auto type = choices.byte();
        if (type > 0x7F) {
            wire += choices.text(type - 0x7Fu);
            continue;
        }
        const auto channel = choices.byte();
        const auto payload = choices.text(choices.number(2));
        const auto length = static_cast<unsigned>(payload.size());
        wire += {static_cast<char>(type),          0,
                 static_cast<char>(channel),       0,
                 static_cast<char>(length >> 16u), static_cast<char>(length >> 8u),
                 static_cast<char>(length)};
        wire.append(payload).append("\xCE");
    }
    return wire;
}

void check_bounds(const Incoming& said) {
    if (const auto* deliver = std::get_if<incoming::Deliver>(&said)) {
        must(deliver->message_id.size() <= 255, "a message_id is a short string");
        must(deliver->body.size() <= largest_body, "a body is no larger than allowed");
    } else if (const auto* returned = std::get_if<incoming::Returned>(&said)) {
        must(returned->message_id.size() <= 255 && returned->reason.size() <= 6 + 255, "texts are short strings");
    }
}

std::vector<std::string> said_by(std::string_view wire, std::size_t chunk) {
    const State state(amqp_new_connection());
    FrameAssembler assembler;
    std::vector<std::string> said;
    while (!wire.empty()) {
        std::string piece(wire.substr(0, chunk));  // on the heap, so that a sanitizer sees a byte too many
        amqp_frame_t frame{};
        const int used = amqp_handle_input(state.get(), {piece.size(), piece.data()}, &frame);
        if (used < 0) {
            said.emplace_back("undecodable");
            break;  // reading on is not safe
        }
        must(used > 0 && static_cast<std::size_t>(used) <= piece.size(), "input is used, and no more than there is");
        wire.remove_prefix(static_cast<std::size_t>(used));
        if (frame.frame_type == 0) continue;  // more has to come
        try {
            if (const auto incoming = assembler.feed(frame)) {
                check_bounds(*incoming);
                said.push_back(described(*incoming));
            }
        } catch (const Failure& failure) {
            said.emplace_back(failure.what());
            break;
        }
        amqp_maybe_release_buffers_on_channel(state.get(), frame.channel);
    }
    return said;
}

}  // namespace
}  // namespace claimq::amqp

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto wire = claimq::amqp::framed(claimq::fuzz::text_of(data, size));
    const auto whole = claimq::amqp::said_by(wire, wire.size());
    claimq::fuzz::must(claimq::amqp::said_by(wire, 5) == whole, "the same, however it was cut");
    return 0;
}
