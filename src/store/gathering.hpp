// When to commit what is pending. No I/O: a table tests it.
#pragma once
#include <algorithm>
#include <optional>

#include "claimq/clock.hpp"

namespace claimq::store {

enum class Others { none, in_hand };

// A commit costs the same for one claim as for many. So while others are in hand it waits a little for their answers:
// as long as the last commit took, and never longer than `longest`.
class Gathering {
public:
    explicit Gathering(std::chrono::microseconds longest) : longest_(longest) {}

    // Something is pending, since now or since earlier.
    void pending(TimePoint now) noexcept {
        if (!since_) since_ = now;
    }
    void committed(Clock::duration took) noexcept {
        last_commit_ = took;
        since_.reset();
    }
    // The epoch: at once.
    [[nodiscard]] TimePoint due(Others others) const noexcept {
        if (!since_ || others == Others::none) return TimePoint{};
        return *since_ + std::min<Clock::duration>(last_commit_, longest_);
    }

private:
    std::chrono::microseconds longest_;
    Clock::duration last_commit_{};
    std::optional<TimePoint> since_;
};

}  // namespace claimq::store
