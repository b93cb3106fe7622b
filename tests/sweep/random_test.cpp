// Thousands of random runs. CLAIMQ_SWEEP_SEED=n replays one, CLAIMQ_SWEEP_TRACE=1 says what happens in it,
// CLAIMQ_SWEEP_RUNS=n makes it n runs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>

#include "random_run.hpp"

namespace claimq::sweep {
namespace {

std::optional<std::uint64_t> number_in(const char* variable) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return std::nullopt;
    return std::stoull(text);
}

void expect_no_violation(std::uint64_t seed) {
    for (const auto& text : random_run(seed).violations)
        ADD_FAILURE() << text << "\nreplay with CLAIMQ_SWEEP_SEED=" << seed;
}

TEST(Random, NoSeedFindsAViolation) {
    if (const auto seed = number_in("CLAIMQ_SWEEP_SEED")) return expect_no_violation(*seed);
    const std::uint64_t first = std::random_device{}();
    const auto runs = number_in("CLAIMQ_SWEEP_RUNS").value_or(10'000);
    std::cout << "seeds " << first << " to " << first + runs - 1 << std::endl;
    for (auto seed = first; seed < first + runs && !HasFailure(); ++seed) expect_no_violation(seed);
}

// Each found something once.
TEST(Random, SeedsThatFoundAViolationOnceDoNotAnyMore) {
    constexpr std::uint64_t seeds[] = {
        514119684,   // --until-empty ended on an answer that had overtaken the last deliveries
        2890684261,  // the same, with an answer to a question from before a delivery
    };
    for (const auto seed : seeds) expect_no_violation(seed);
}

}  // namespace
}  // namespace claimq::sweep
