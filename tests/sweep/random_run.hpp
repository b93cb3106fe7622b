// A run that a seed decides: claims, answers, trouble; then all is well again, and the queue is drained.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "decorators.hpp"

namespace claimq::sweep {

struct Findings {
    std::vector<std::string> violations;
    int effects = 0;
    int processes = 0;
};

[[nodiscard]] Findings random_run(std::uint64_t seed, Mutation mutation = Mutation::none);

}  // namespace claimq::sweep
