// Several consumers on one store. Two inboxes in one process conflict as two processes do: their locks belong to open
// file descriptions.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "store_fixture.hpp"

namespace claimq::store_test {
namespace {

class SharedStore : public StoreTest {
protected:
    std::unique_ptr<Inbox> one_ = open();
    std::unique_ptr<Inbox> two_ = open();
};

constexpr Milliseconds kAskedAgain{100};

TEST_F(SharedStore, AnIdInOtherHandsIsHeldAndToldSoOnce) {
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    EXPECT_EQ(admit(*two_, 2, "a"), Words{"2 held"});
    EXPECT_EQ(admit(*two_, 3, "a"), Words{"3 held"});
    EXPECT_EQ(admit(*two_, 4, "b"), Words{"4 fresh"});
    for (int turns = 0; turns < 5; ++turns) EXPECT_EQ(turn(*two_, kAskedAgain), Words{});
}

TEST_F(SharedStore, AHeldIdIsAskedAgainEvery100Milliseconds) {
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    EXPECT_EQ(admit(*two_, 2, "a"), Words{"2 held"});
    EXPECT_EQ(two_->watch().due, now_ + kAskedAgain);
    one_->release(1);
    EXPECT_EQ(turn(*two_, kAskedAgain - Milliseconds{1}), Words{});
    EXPECT_EQ(turn(*two_, Milliseconds{1}), Words{"2 fresh"});
    EXPECT_EQ(two_->watch().due, TimePoint::max());
    EXPECT_EQ(admit(*one_, 3, "a"), Words{"3 held"}) << "now it is the other one's";
}

TEST_F(SharedStore, AClaimCommittedElsewhereMeanwhileIsSeen) {
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    EXPECT_EQ(admit(*two_, 2, "b"), Words{"2 fresh"}) << "a snapshot that must not stay open";
    EXPECT_EQ(admit(*two_, 3, "a"), Words{"3 held"});
    EXPECT_EQ(record(*one_, 1), Words{"1 recorded"});
    EXPECT_EQ(turn(*two_, kAskedAgain), Words{"3 done"});
    EXPECT_EQ(admit(*two_, 4, "a"), Words{"4 done"});
}

TEST_F(SharedStore, AllThatWaitForAnIdAreAnsweredWhenItIsProcessedElsewhere) {
    EXPECT_EQ(admit(*one_, 1, "a", "one"), Words{"1 fresh"});
    two_->admit(2, "a", "one");
    two_->admit(3, "a", "two");
    two_->admit(4, "a", "one");
    EXPECT_EQ(turn(*two_), (Words{"2 held", "3 held", "4 held"}));
    EXPECT_EQ(record(*one_, 1), Words{"1 recorded"});
    EXPECT_EQ(turn(*two_, kAskedAgain), (Words{"2 done", "4 done"}));
    EXPECT_EQ(turn(*two_), Words{"3 done, other body"});
    EXPECT_EQ(admit(*one_, 5, "a", "one"), Words{"5 done"}) << "and the id is locked by nobody";
}

TEST_F(SharedStore, AnIdIsKeptUntilItsRecordIsOnDisk) {
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    one_->record({1, Outcome::accepted, 201, ""});
    EXPECT_EQ(admit(*two_, 2, "a"), Words{"2 held"});
    EXPECT_EQ(turn(*one_), Words{"1 recorded"});
    EXPECT_EQ(turn(*two_, kAskedAgain), Words{"2 done"});
}

TEST_F(SharedStore, ARejectedIdIsTheOthersToCall) {
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    EXPECT_EQ(admit(*two_, 2, "a"), Words{"2 held"});
    EXPECT_EQ(record(*one_, 1, Outcome::rejected, 422), Words{"1 recorded"});
    EXPECT_EQ(turn(*two_, kAskedAgain), Words{"2 fresh"});
}

TEST_F(SharedStore, AnIdPassedOnWithinOneProcessIsNeverFreeInBetween) {
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    EXPECT_EQ(admit(*one_, 2, "a"), Words{"2 held"});
    EXPECT_EQ(admit(*two_, 3, "a"), Words{"3 held"});
    one_->release(1);
    EXPECT_EQ(turn(*two_, kAskedAgain), Words{});
    EXPECT_EQ(turn(*one_), Words{"2 fresh"});
}

TEST_F(SharedStore, TheEndOfAConsumerFreesItsIds) {
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    EXPECT_EQ(admit(*two_, 2, "a"), Words{"2 held"});
    one_.reset();
    EXPECT_EQ(turn(*two_, kAskedAgain), Words{"2 fresh"});
}

TEST_F(SharedStore, TheEndOfAConsumerLeavesTheOthersLocksAlone) {
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    two_.reset();
    EXPECT_EQ(admit(*open(), 2, "a"), Words{"2 held"});
}

TEST_F(SharedStore, ALinkToTheStoreLocksTheSameIds) {
    const auto link = folder_.path() / "link.db";
    std::filesystem::create_symlink(path(), link);
    const auto linked = open_sqlite_inbox({.path = link});
    EXPECT_EQ(admit(*one_, 1, "a"), Words{"1 fresh"});
    EXPECT_EQ(admit(*linked, 2, "a"), Words{"2 held"});
    EXPECT_EQ(names_in(folder_.path()),
              (Words{"link.db", "processed.db", "processed.db-inflight", "processed.db-shm", "processed.db-wal"}));
}

using ManyConsumers = StoreTest;

TEST_F(ManyConsumers, AKilledConsumerFreesItsIdsAtOnce) {
    std::array<int, 2> told{};
    ASSERT_EQ(pipe(told.data()), 0);
    const pid_t child = start_child([&] {
        const auto inbox = open();
        const char byte = admit(*inbox, 1, "a") == Words{"1 fresh"} ? 'f' : '?';
        if (write(told[1], &byte, 1) == 1) pause();
        return 1;
    });
    char byte = 0;
    ASSERT_EQ(read(told[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'f');
    const auto inbox = open();
    EXPECT_EQ(admit(*inbox, 2, "a"), Words{"2 held"});
    ASSERT_EQ(kill(child, SIGKILL), 0);
    EXPECT_EQ(status_of(child), 128 + SIGKILL);
    EXPECT_EQ(turn(*inbox, kAskedAgain), Words{"2 fresh"});
    EXPECT_EQ(admit(*open(), 3, "a"), Words{"3 held"});
    close(told[0]);
    close(told[1]);
}

constexpr int kConsumers = 8;
constexpr Ticket kIds = 60;

// One consumer: asks for all ids, each twice, writes down those that are fresh, records them, until all are done.
int consume_all(const std::filesystem::path& store, std::ofstream called, unsigned first) {
    const auto inbox = open_sqlite_inbox({.path = store});
    for (Ticket ticket = 0; ticket < 2 * kIds; ++ticket)
        inbox->admit(ticket, "id " + std::to_string((ticket + first) % kIds), "body");
    for (Ticket open = 2 * kIds; open > 0;) {
        for (const InboxEvent& event : inbox->turn(Clock::now())) {
            const auto* admitted = std::get_if<inbox_event::Admitted>(&event);
            if (std::holds_alternative<inbox_event::Broken>(event)) return 1;
            if (std::holds_alternative<inbox_event::Recorded>(event)) --open;
            if (admitted == nullptr || admitted->verdict == Admission::held) continue;
            if (admitted->verdict == Admission::done) --open;
            if (admitted->verdict != Admission::fresh) continue;
            called << (admitted->ticket + first) % kIds << std::endl;
            inbox->record({admitted->ticket, Outcome::accepted, 201, ""});
        }
        const auto wait = std::chrono::ceil<Milliseconds>(inbox->watch().due - Clock::now());
        if (open > 0) poll(nullptr, 0, static_cast<int>(std::clamp(wait, Milliseconds{0}, Milliseconds{1000}).count()));
    }
    return 0;
}

TEST_F(ManyConsumers, EightThatStartAtOnceOnANewStoreCallEachIdOnce) {
    const auto store = folder_.path() / "new" / "folder" / "processed.db";
    const auto called = [&](int consumer) { return folder_.path() / ("called-" + std::to_string(consumer)); };
    std::array<pid_t, kConsumers> children{};
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
        children[static_cast<std::size_t>(consumer)] = start_child(
            [&] { return consume_all(store, std::ofstream(called(consumer)), static_cast<unsigned>(7 * consumer)); });
    }
    for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
    std::map<std::string, int> calls;
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
        std::ifstream file(called(consumer));
        for (std::string id; std::getline(file, id);) ++calls[id];
    }
    EXPECT_EQ(calls.size(), kIds);
    for (const auto& [id, times] : calls) EXPECT_EQ(times, 1) << id;
    EXPECT_EQ(OtherConnection(store).value("SELECT count(*) FROM processed"), std::to_string(kIds));
}

}  // namespace
}  // namespace claimq::store_test
