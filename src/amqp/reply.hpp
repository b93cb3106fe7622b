// rabbitmq-c's results in our words.
#pragma once
#include <amqp.h>

#include <optional>
#include <string>

#include "claimq/exit_status.hpp"

namespace claimq::amqp {

// The broker closed a channel over what was asked of it.
struct Refusal {
    int code = 0;  // 403 access refused, 404 not found, 406 precondition failed, …
    std::string text;
};

[[nodiscard]] ExitStatus status_of(int reply_code) noexcept;

// The library's words for a status, with the system's where errno still belongs to it: call at once.
[[nodiscard]] std::string library_text(int status);

// The channel's refusal, if that is what the reply holds. Throws Failure{unavailable} when the connection failed.
[[nodiscard]] std::optional<Refusal> refusal(const amqp_rpc_reply_t& reply);

}  // namespace claimq::amqp
