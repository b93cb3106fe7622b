// --retention DAYS: what is forgotten, how fast, and when not.
#include "store/retention.hpp"

#include "store_fixture.hpp"

namespace claimq::store_test {
namespace {

using std::chrono::days;
using WallTime = std::chrono::system_clock::time_point;

class Retention : public StoreTest {
protected:
    [[nodiscard]] StoreOptions keep(days time) {
        return {.path = path(), .retention = time, .wall_clock = [this] { return wall_; }};
    }
    [[nodiscard]] Words kept() { return other().column("SELECT message_id FROM processed ORDER BY rowid"); }

    WallTime wall_ = std::chrono::sys_days{std::chrono::year{2026} / 7 / 31};
};

TEST_F(Retention, ForgetsWhatIsOlderAndNothingElse) {
    const auto inbox = open_sqlite_inbox(keep(days{10}));
    process(*inbox, 1, "old");
    EXPECT_EQ(admit(*inbox, 2, "old", "other"), Words{});
    EXPECT_EQ(turn(*inbox), Words{"2 done, other body"});
    EXPECT_EQ(admit(*inbox, 3, "refused"), Words{"3 fresh"});
    EXPECT_EQ(record(*inbox, 3, Outcome::rejected, 422), Words{"3 recorded"});
    wall_ += days{6};
    process(*inbox, 4, "young");
    wall_ += days{6};
    EXPECT_LE(inbox->watch().due, now_ + Milliseconds{10'000});
    EXPECT_EQ(turn(*inbox, Milliseconds{10'000}), Words{});
    EXPECT_EQ(kept(), Words{"young"});
    EXPECT_EQ(other().value("SELECT count(*) FROM other_bodies"), "0");
    EXPECT_EQ(other().value("SELECT count(*) FROM dead_letters"), "0");
    EXPECT_EQ(admit(*inbox, 5, "old"), Words{"5 fresh"});
}

TEST_F(Retention, DeletesSomeAtATimeAndTheOldestFirst) {
    const auto inbox = open_sqlite_inbox(keep(days{10}));
    for (Ticket ticket = 1; ticket <= 500; ++ticket) inbox->admit(ticket, std::to_string(ticket), "body");
    EXPECT_EQ(turn(*inbox).size(), 500U);
    for (Ticket ticket = 1; ticket <= 500; ++ticket) inbox->record({ticket, Outcome::accepted, 201, ""});
    EXPECT_EQ(turn(*inbox).size(), 500U);
    wall_ += days{11};
    process(*inbox, 501, "young");
    EXPECT_EQ(turn(*inbox, Milliseconds{10'000}), Words{});
    EXPECT_EQ(kept().size(), 301U);
    EXPECT_EQ(kept().front(), "201");
    EXPECT_EQ(inbox->watch().due, now_ + Milliseconds{100});
    EXPECT_EQ(turn(*inbox, Milliseconds{100}), Words{});
    EXPECT_EQ(turn(*inbox, Milliseconds{100}), Words{});
    EXPECT_EQ(kept(), Words{"young"});
    EXPECT_EQ(inbox->watch().due, now_ + Milliseconds{10'000});
}

TEST_F(Retention, IsRefusedWhenEvenTheNewestRecordIsOlder) {
    process(*open_sqlite_inbox(keep(days{10})), 1, "a");
    wall_ += days{11};
    EXPECT_EQ(
        refusal(keep(days{10})),
        "store '" + path().string() +
            "': even its newest record (2026-07-31T00:00:00.000Z) is older than --retention 10: is this machine's "
            "clock right? Nothing was deleted");
    EXPECT_EQ(kept(), Words{"a"});
    EXPECT_EQ(refusal(keep(days{12})), "");
    EXPECT_EQ(refusal({.path = path()}), "");
}

TEST_F(Retention, IsFineWithAnEmptyStore) {
    EXPECT_EQ(refusal(keep(days{1})), "");
    wall_ += days{1000};
    EXPECT_EQ(refusal(keep(days{1})), "");
}

TEST_F(Retention, ForgetsNothingWhenTheClockJumpsDuringTheRun) {
    const auto inbox = open_sqlite_inbox(keep(days{10}));
    process(*inbox, 1, "a");
    wall_ += days{3650};
    EXPECT_EQ(turn(*inbox, Milliseconds{10'000}), Words{});
    EXPECT_EQ(kept(), Words{"a"});
}

TEST_F(Retention, MayBeLongerThanTheClockReachesBack) {
    const auto inbox = open_sqlite_inbox(keep(days{2'000'000'000}));
    process(*inbox, 1, "a");
    EXPECT_EQ(turn(*inbox, Milliseconds{10'000}), Words{});
    EXPECT_EQ(kept(), Words{"a"});
}

TEST_F(Retention, WaitsForABusyStoreLikeEverythingElse) {
    const auto inbox = open_sqlite_inbox(keep(days{10}));
    process(*inbox, 1, "old");
    wall_ += days{6};
    process(*inbox, 2, "young");
    wall_ += days{6};
    auto locker = other();
    locker.run("BEGIN IMMEDIATE");
    EXPECT_EQ(turn(*inbox, Milliseconds{10'000}), Words{});
    EXPECT_GT(inbox->watch().due, now_);
    locker.run("ROLLBACK");
    EXPECT_EQ(turn(*inbox, Milliseconds{50}), Words{});
    EXPECT_EQ(kept(), Words{"young"});
}

}  // namespace
}  // namespace claimq::store_test
