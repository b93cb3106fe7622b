// Tests of the test: each mistake put around the loop has to be found, and soon.
#include <gtest/gtest.h>

#include "random_run.hpp"

namespace claimq::sweep {
namespace {

struct Mistake {
    const char* name;
    Mutation mutation;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreFound) {
    constexpr std::uint64_t most_seeds = 1'000;
    for (std::uint64_t seed = 1; seed <= most_seeds; ++seed) {
        const auto findings = random_run(seed, GetParam().mutation);
        if (findings.violations.empty()) continue;
        RecordProperty("found_by_seed", static_cast<int>(seed));
        RecordProperty("violation", findings.violations.front());
        return;
    }
    FAIL() << "not found by " << most_seeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Sweep, Mistakes,
                         testing::Values(Mistake{"AcksBeforeItRecords", Mutation::acks_before_it_records},
                                         Mistake{"TakesNoLocks", Mutation::takes_no_locks},
                                         Mistake{"LooksBeforeItLocks", Mutation::looks_before_it_locks},
                                         Mistake{"UsesOldTags", Mutation::uses_old_tags},
                                         Mistake{"DropsAnswersAfterAStall", Mutation::drops_answers_after_a_stall},
                                         Mistake{"DropsAnswersAfterALoss", Mutation::drops_answers_after_a_loss},
                                         Mistake{"CallsWhatIsDone", Mutation::calls_what_is_done},
                                         Mistake{"AcksWhatIsRejected", Mutation::acks_what_is_rejected},
                                         Mistake{"BelievesInFirstDeliveries", Mutation::believes_in_first_deliveries},
                                         Mistake{"NeverGivesIdsBack", Mutation::never_gives_ids_back}),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace claimq::sweep
