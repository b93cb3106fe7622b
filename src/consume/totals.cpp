#include "consume/totals.hpp"

#include <cstdio>

namespace claimq::consume {

void Totals::count(Outcome outcome, Settlement settlement) {
    switch (outcome) {
        case Outcome::accepted: ++accepted; return;
        case Outcome::duplicate: ++duplicate; return;
        case Outcome::rejected: ++rejected; return;
        case Outcome::failed:
        case Outcome::unidentified:
        case Outcome::stopped: break;
    }
    ++(settlement == Settlement::dead_letter ? dead_lettered : requeued);
}

std::string Totals::json() const {
    const auto field = [](const char* name, std::uint64_t value) {
        return "\"" + std::string(name) + "\":" + std::to_string(value) + ",";
    };
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.3f", static_cast<double>(took.count()) / 1000.0);
    return "{" + field("accepted", accepted) + field("duplicate", duplicate) + field("rejected", rejected) +
           field("requeued", requeued) + field("dead_lettered", dead_lettered) + field("conflicts", conflicts) +
           "\"seconds\":" + seconds + "}";
}

}  // namespace claimq::consume
