// The store, which outlives its consumers: what is committed stays, the locks of a dead process are free at once.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claimq/inbox.hpp"
#include "fake_clock.hpp"

namespace claimq::fake {

struct DeadLetter {
    std::string id;
    Outcome outcome = Outcome::failed;
    int status = 0;
    std::string reason;
};

struct FakeStore {
    std::map<std::string, std::string> processed;  // id to body
    std::vector<DeadLetter> dead_letters;
    std::set<std::pair<std::string, std::string>> other_bodies;
    std::map<std::string, int> locks;  // id to process

    TimePoint busy_until{};  // somebody else is writing
    bool broken = false;     // deleted, swapped, full
    bool answers = true;     // false: its server hangs
    Milliseconds commit_takes{0};
    int commits = 0;
};

}  // namespace claimq::fake
