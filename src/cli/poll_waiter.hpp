// Waiting by poll(2) on the monotonic clock.
#pragma once
#include "claimq/waiter.hpp"

namespace claimq::cli {

class PollWaiter : public Waiter {
public:
    [[nodiscard]] TimePoint now() const override { return Clock::now(); }
    void wait(std::span<const Watch> watches) override;
};

}  // namespace claimq::cli
