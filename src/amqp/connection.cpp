#include "amqp/connection.hpp"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "amqp/connect_failure.hpp"
#include "amqp/reply.hpp"
#include "amqp/tls.hpp"

namespace claimq::amqp {

namespace {

constexpr auto rpc_timeout = Milliseconds{10'000};
constexpr auto goodbye_timeout = Milliseconds{2'000};
constexpr int most_frames = 1024;  // in one take(): what completes nothing must not keep the caller from all else
constexpr int default_frame_max = 131'072;  // named, since 0.11.0-1+deb12u2 turns 0 into 4096

timeval to_timeval(Milliseconds time) {
    const auto ms = std::max<std::int64_t>(time.count(), 1);
    return {static_cast<time_t>(ms / 1000), static_cast<suseconds_t>(ms % 1000 * 1000)};
}

amqp_table_entry_t yes(const char* name) {
    amqp_table_entry_t entry{};
    entry.key = amqp_cstring_bytes(name);
    entry.value.kind = AMQP_FIELD_KIND_BOOLEAN;
    entry.value.value.boolean = 1;
    return entry;
}

ConnectFailure in_context(const Endpoint& endpoint, ExitStatus status, Retry retry, const std::string& reason) {
    return {status, retry, "broker " + masked(endpoint) + ": " + reason};
}

// Login refused and an unknown vhost will not mend themselves within a start-up; everything else may.
Retry retry_after_login(int reply_code) {
    return reply_code == AMQP_ACCESS_REFUSED || reply_code == AMQP_NOT_ALLOWED ? Retry::pointless : Retry::worthwhile;
}

}  // namespace

std::string host_and_port(const Endpoint& endpoint) {
    const bool ipv6 = endpoint.host.find(':') != std::string::npos;
    return (ipv6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

Connection::Connection(const Endpoint& endpoint, const std::string& program)
    : state_(amqp_new_connection()), host_(host_and_port(endpoint)) {
    if (!state_) throw ConnectFailure(ExitStatus::os_error, Retry::pointless, "out of memory");
    const auto until = Clock::now() + endpoint.stack_timeout;
    try {
        const auto addresses = resolve(endpoint.host, endpoint.port, until);
        if (endpoint.scheme == Scheme::amqps) {
            open_tls(state_.get(), endpoint, addresses, until);
        } else {
            const int fd = connect_tcp(addresses, endpoint.socket_timeout, until);
            amqp_tcp_socket_set_sockfd(amqp_tcp_socket_new(state_.get()), fd);
        }
        // A blocked connection is silent for a while by right, so the kernel must be more patient than that.
        set_user_timeout(amqp_get_sockfd(state_.get()),
                         std::max({Milliseconds{30'000}, Milliseconds{2 * endpoint.heartbeat},
                                   Milliseconds{endpoint.blocked_connection_timeout} + Milliseconds{10'000}}));
        log_in(endpoint, program, until);
    } catch (const ConnectFailure& failure) {
        throw in_context(endpoint, failure.status(), failure.retry(), failure.what());
    } catch (const Failure& failure) {
        throw in_context(endpoint, failure.status(), Retry::worthwhile, failure.what());
    }
}

void Connection::log_in(const Endpoint& endpoint, const std::string& program, TimePoint until) {
    // 0.11 announces none of these: without the first a deleted queue is silence for ever, without the second an alarm
    // is.
    std::array capabilities{yes("consumer_cancel_notify"), yes("connection.blocked"), yes("basic.nack"),
                            yes("publisher_confirms"), yes("authentication_failure_close")};
    std::array<amqp_table_entry_t, 2> entries{};
    entries[0].key = amqp_cstring_bytes("capabilities");
    entries[0].value.kind = AMQP_FIELD_KIND_TABLE;
    entries[0].value.value.table = {static_cast<int>(capabilities.size()), capabilities.data()};
    entries[1].key = amqp_cstring_bytes("connection_name");
    entries[1].value.kind = AMQP_FIELD_KIND_UTF8;
    entries[1].value.value.bytes = amqp_cstring_bytes(program.c_str());
    const amqp_table_t properties{static_cast<int>(entries.size()), entries.data()};

    const auto handshake = to_timeval(std::chrono::duration_cast<Milliseconds>(until - Clock::now()));
    amqp_set_handshake_timeout(state_.get(), &handshake);
    const auto rpc = to_timeval(rpc_timeout);
    amqp_set_rpc_timeout(state_.get(), &rpc);

    const int channel_max = endpoint.channel_max.value_or(0);
    const int frame_max = std::min(endpoint.frame_max.value_or(default_frame_max), default_frame_max);
    const auto heartbeat = static_cast<int>(endpoint.heartbeat.count());
    errno = 0;
    const auto reply =
        endpoint.auth == AuthMechanism::external
            ? amqp_login_with_properties(state_.get(), endpoint.vhost.c_str(), channel_max, frame_max, heartbeat,
                                         &properties, AMQP_SASL_METHOD_EXTERNAL, endpoint.user.c_str())
            : amqp_login_with_properties(state_.get(), endpoint.vhost.c_str(), channel_max, frame_max, heartbeat,
                                         &properties, AMQP_SASL_METHOD_PLAIN, endpoint.user.c_str(),
                                         endpoint.password.c_str());
    if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
        const auto& close = *static_cast<amqp_connection_close_t*>(reply.reply.decoded);
        throw ConnectFailure(status_of(close.reply_code), retry_after_login(close.reply_code),
                             std::string(static_cast<char*>(close.reply_text.bytes), close.reply_text.len));
    }
    if (const auto refused = refusal(reply)) throw Failure(ExitStatus::unavailable, refused->text);
    open_channel();
}

void Connection::open_channel() {
    amqp_channel_open(state_.get(), channel);
    if (const auto refused = refusal(amqp_get_rpc_reply(state_.get())))
        throw Failure(status_of(refused->code), refused->text);
}

std::optional<Incoming> Connection::take() {
    amqp_frame_t frame;
    const timeval now{0, 0};
    for (int count = 0; count < most_frames; ++count) {
        errno = 0;
        const int status = amqp_simple_wait_frame_noblock(state_.get(), &frame, &now);
        if (status == AMQP_STATUS_TIMEOUT) return std::nullopt;
        if (status != AMQP_STATUS_OK) throw Failure(ExitStatus::unavailable, library_text(status));
        auto said = assembler_.feed(frame);
        // After each frame, not each message: the library keeps for good what it once took for a channel's buffers.
        amqp_maybe_release_buffers_on_channel(state_.get(), frame.channel);
        if (!said) continue;
        answer_close(*said);
        return said;
    }
    return std::nullopt;
}

void Connection::answer_close(const Incoming& said) {
    // Unanswered, the broker keeps the connection for five seconds and the channel's number for ever.
    if (std::holds_alternative<incoming::ConnectionClosed>(said)) {
        amqp_connection_close_ok_t ok{};
        amqp_send_method(state_.get(), 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
    } else if (std::holds_alternative<incoming::ChannelClosed>(said)) {
        amqp_channel_close_ok_t ok{};
        amqp_send_method(state_.get(), channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
    }
}

void Connection::send_method(amqp_method_number_t id, void* decoded) {
    errno = 0;
    const int status = amqp_send_method(state_.get(), channel, id, decoded);
    if (status != AMQP_STATUS_OK) throw Failure(ExitStatus::unavailable, library_text(status));
}

void Connection::send_frame(const amqp_frame_t& frame) {
    errno = 0;
    const int status = amqp_send_frame(state_.get(), &frame);
    if (status != AMQP_STATUS_OK) throw Failure(ExitStatus::unavailable, library_text(status));
}

bool Connection::takes(std::size_t bytes) const noexcept {
    return send_buffer_takes(amqp_get_sockfd(state_.get()), bytes);
}

std::size_t Connection::room(std::size_t wanted) const noexcept {
    return send_buffer_room(amqp_get_sockfd(state_.get()), wanted);
}

void Connection::cork(Corked corked) const noexcept { set_corked(amqp_get_sockfd(state_.get()), corked); }

Watch Connection::watch(TimePoint now) const noexcept {
    if (amqp_frames_enqueued(state_.get()) || amqp_data_in_buffer(state_.get())) return {-1, 0, now};
    // take() is the only place that sends heartbeats and misses the broker's.
    const auto heartbeat = amqp_get_heartbeat(state_.get());
    const auto due = heartbeat > 0 ? now + Milliseconds{heartbeat * 250} : TimePoint::max();
    return {amqp_get_sockfd(state_.get()), POLLIN, due};
}

std::size_t Connection::frame_max() const noexcept {
    return static_cast<std::size_t>(amqp_get_frame_max(state_.get()));
}

Connection connect(const Endpoint& endpoint, const std::string& program, int least_attempts) {
    const int attempts = std::max(endpoint.connection_attempts, least_attempts);
    for (int attempt = 1;; ++attempt) {
        try {
            return Connection(endpoint, program);
        } catch (const ConnectFailure& failure) {
            if (attempt >= attempts || failure.retry() == Retry::pointless) throw;
        }
        std::this_thread::sleep_for(endpoint.retry_delay);
    }
}

void Connection::close() noexcept {
    if (!takes(64)) return;
    amqp_connection_close_t goodbye{};
    goodbye.reply_code = AMQP_REPLY_SUCCESS;
    if (amqp_send_method(state_.get(), 0, AMQP_CONNECTION_CLOSE_METHOD, &goodbye) != AMQP_STATUS_OK) return;
    // Not by amqp_connection_close(): it keeps all that comes before the answer, and while something comes it does not
    // look at its timeout.
    const auto until = Clock::now() + goodbye_timeout;
    for (auto now = Clock::now(); now < until; now = Clock::now()) {
        const auto patience = to_timeval(std::chrono::duration_cast<Milliseconds>(until - now));
        amqp_frame_t frame;
        if (amqp_simple_wait_frame_noblock(state_.get(), &frame, &patience) != AMQP_STATUS_OK) return;
        const bool is_method = frame.frame_type == AMQP_FRAME_METHOD;
        if (is_method && frame.payload.method.id == AMQP_CONNECTION_CLOSE_OK_METHOD) return;
        if (is_method && frame.payload.method.id == AMQP_CONNECTION_CLOSE_METHOD) return;
        amqp_maybe_release_buffers_on_channel(state_.get(), frame.channel);
    }
}

}  // namespace claimq::amqp
