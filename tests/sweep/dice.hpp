// Chance that a seed decides, the same on every machine (std::uniform_int_distribution is not).
#pragma once
#include <cstdint>

#include "claimq/clock.hpp"

namespace claimq::sweep {

class Dice {
public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}

    [[nodiscard]] std::uint64_t next() {  // splitmix64
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31U);
    }
    [[nodiscard]] int between(int least, int most) {
        return least + static_cast<int>(next() % static_cast<std::uint64_t>(most - least + 1));
    }
    [[nodiscard]] Milliseconds between(Milliseconds least, Milliseconds most) {
        return Milliseconds{between(static_cast<int>(least.count()), static_cast<int>(most.count()))};
    }
    [[nodiscard]] bool percent(int chance) { return between(1, 100) <= chance; }
    [[nodiscard]] Dice another() { return Dice(next()); }

private:
    std::uint64_t state_;
};

}  // namespace claimq::sweep
