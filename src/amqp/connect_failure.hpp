// Why a connection could not be had, and whether trying again can help.
#pragma once
#include "claimq/failure.hpp"

namespace claimq::amqp {

enum class Retry { pointless, worthwhile };

class ConnectFailure : public Failure {
public:
    ConnectFailure(ExitStatus status, Retry retry, const std::string& text) : Failure(status, text), retry_(retry) {}
    [[nodiscard]] Retry retry() const noexcept { return retry_; }

private:
    Retry retry_;
};

}  // namespace claimq::amqp
