// How long to wait before the next attempt to connect.
#pragma once
#include <algorithm>

#include "claimq/clock.hpp"

namespace claimq::amqp {

// Doubles from 100 ms to `most`, less up to a quarter (`chance` is 0 to 1), so that consumers that lost one broker do
// not come back as one.
[[nodiscard]] constexpr Milliseconds backoff(int attempt, Milliseconds most, double chance) {
    constexpr Milliseconds first{100};
    const auto doubled = first * (1 << std::clamp(attempt, 0, 16));
    const auto whole = std::min(doubled, std::max(most, first));
    return whole - Milliseconds{static_cast<std::int64_t>(static_cast<double>(whole.count()) / 4 * chance)};
}

}  // namespace claimq::amqp
