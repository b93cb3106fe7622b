// How many calls may be in flight to the claims system at once. A claims system that works serially, given five calls
// at once, processes claims whose callers have timed out; so the bound starts at 1 and follows what the answers say.
#pragma once
#include "claimq/clock.hpp"

namespace claimq {

class ConcurrencyBound {
public:
    ConcurrencyBound(int most, Milliseconds timeout) : most_(most), timeout_(timeout) {}

    [[nodiscard]] int value() const noexcept { return bound_; }

    // An answer came: within half the timeout the bound grows by one, later it is halved.
    void answered(Milliseconds took) noexcept;

    // A call timed out while `in_flight` calls, itself included, were out: for the rest of the run the bound stays
    // below that.
    void timed_out(int in_flight) noexcept;

private:
    int most_;
    Milliseconds timeout_;
    int bound_ = 1;
};

}  // namespace claimq
