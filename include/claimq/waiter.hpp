// Time and waiting, as a seam: the one place where a loop sleeps.
#pragma once
#include <span>

#include "claimq/clock.hpp"

namespace claimq {

class Waiter {
public:
    virtual ~Waiter() = default;
    [[nodiscard]] virtual TimePoint now() const = 0;

    // Returns when a descriptor is ready, the earliest `due` is reached, or earlier for no reason.
    virtual void wait(std::span<const Watch> watches) = 0;
};

}  // namespace claimq
