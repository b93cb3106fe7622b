#include "claimq/concurrency_bound.hpp"

#include <algorithm>

namespace claimq {

void ConcurrencyBound::answered(Milliseconds took) noexcept {
    bound_ = took <= timeout_ / 2 ? std::min(bound_ + 1, most_) : std::max(bound_ / 2, 1);
}

void ConcurrencyBound::timed_out(int in_flight) noexcept {
    most_ = std::clamp(in_flight - 1, 1, most_);
    bound_ = std::min(bound_, most_);
}

}  // namespace claimq
