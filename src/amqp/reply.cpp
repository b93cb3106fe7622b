#include "amqp/reply.hpp"

#include <amqp_framing.h>

#include <cerrno>
#include <system_error>

#include "claimq/failure.hpp"

namespace claimq::amqp {

ExitStatus status_of(int reply_code) noexcept {
    switch (reply_code) {
        case AMQP_ACCESS_REFUSED: return ExitStatus::denied;
        case AMQP_PRECONDITION_FAILED: return ExitStatus::conflict;
        default: return ExitStatus::unavailable;
    }
}

std::string library_text(int status) {
    const int error = errno;
    switch (status) {
        case AMQP_STATUS_SOCKET_ERROR:
        case AMQP_STATUS_SSL_ERROR:
            return error != 0 ? std::generic_category().message(error) : amqp_error_string2(status);
        case AMQP_STATUS_CONNECTION_CLOSED: return "the broker closed the connection";
        case AMQP_STATUS_HEARTBEAT_TIMEOUT: return "no heartbeat from the broker";
        case AMQP_STATUS_TIMEOUT: return "the broker did not answer in time";
        case AMQP_STATUS_BAD_AMQP_DATA: return "what answers there does not speak AMQP 0-9-1";
        default: return amqp_error_string2(status);
    }
}

std::optional<Refusal> refusal(const amqp_rpc_reply_t& reply) {
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) return std::nullopt;
    if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION)
        throw Failure(ExitStatus::unavailable, library_text(reply.library_error));
    const auto words = [](amqp_bytes_t text) { return std::string(static_cast<const char*>(text.bytes), text.len); };
    if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
        const auto& close = *static_cast<amqp_channel_close_t*>(reply.reply.decoded);
        return Refusal{close.reply_code, words(close.reply_text)};
    }
    if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
        const auto& close = *static_cast<amqp_connection_close_t*>(reply.reply.decoded);
        throw Failure(status_of(close.reply_code), words(close.reply_text));
    }
    throw Failure(ExitStatus::unavailable, "the broker gave an answer that was not asked for");
}

}  // namespace claimq::amqp
