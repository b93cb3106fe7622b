// How long the store has been busy, and what that means. No I/O: a table tests it.
#pragma once
#include <optional>

#include "claimq/clock.hpp"

namespace claimq::store {

class BusySpell {
public:
    // Consumers on one store meet at their commits all the time, for milliseconds: only a longer spell stops the calls.
    static constexpr Milliseconds kDownAfter{500};
    static constexpr Milliseconds kGivesUpAfter{60'000};
    static constexpr Milliseconds kFirstPause{1};
    static constexpr Milliseconds kLongestPause{25};

    enum class Meaning { try_again, goes_down, is_down, gives_up };
    [[nodiscard]] Meaning busy(TimePoint now);

    enum class Was { none, short_wait, down };
    Was works();

    [[nodiscard]] bool active() const noexcept { return since_.has_value(); }
    [[nodiscard]] bool down() const noexcept { return down_; }
    [[nodiscard]] TimePoint try_again_at() const noexcept { return try_again_at_; }  // while active

private:
    std::optional<TimePoint> since_;
    TimePoint try_again_at_{};
    Milliseconds pause_ = kFirstPause;
    bool down_ = false;
};

}  // namespace claimq::store
