// What a run did, for its last line. Each delivery that was settled counts once.
#pragma once
#include <cstdint>
#include <string>

#include "claimq/clock.hpp"
#include "claimq/settlement.hpp"

namespace claimq::consume {

struct Totals {
    std::uint64_t accepted = 0;
    std::uint64_t duplicate = 0;      // acked without a call
    std::uint64_t rejected = 0;       // by the claims system, to claim.dead
    std::uint64_t requeued = 0;       // failed, and given one more try
    std::uint64_t dead_lettered = 0;  // failed again, or not to be identified: to claim.dead
    std::uint64_t conflicts = 0;      // of the duplicates: with another body than the one that was processed

    Milliseconds took{0};

    void count(Outcome outcome, Settlement settlement);
    [[nodiscard]] std::string json() const;
};

}  // namespace claimq::consume
