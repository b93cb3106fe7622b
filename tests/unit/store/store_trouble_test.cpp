// The store is busy, full, gone: what is answered then, and what is not.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include <optional>

#include "store/busy_spell.hpp"
#include "store_fixture.hpp"

namespace claimq::store_test {
namespace {

using store::BusySpell;

// Another consumer, or the sqlite3 shell, in the middle of a transaction.
class BusyStore : public StoreTest {
protected:
    void lock() {
        locker_.emplace(path());
        locker_->run("BEGIN IMMEDIATE");
    }
    void unlock() { locker_->run("ROLLBACK"); }

    std::unique_ptr<Inbox> inbox_ = open();
    std::optional<OtherConnection> locker_;
};

TEST_F(BusyStore, AShortWaitForAnotherCommitIsNothingToSpeakOf) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    lock();
    EXPECT_EQ(record(*inbox_, 1), Words{});
    EXPECT_GT(inbox_->watch().due, now_) << "it must not spin";
    EXPECT_LE(inbox_->watch().due, now_ + Milliseconds{50});
    EXPECT_EQ(admit(*inbox_, 2, "b"), Words{"2 fresh"}) << "the store works, and others may read";
    unlock();
    EXPECT_EQ(turn(*inbox_, Milliseconds{50}), Words{"1 recorded"});
    EXPECT_EQ(inbox_->watch().due, TimePoint::max());
}

TEST_F(BusyStore, ALongerOneTakesItDownAndUpAgain) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    lock();
    EXPECT_EQ(record(*inbox_, 1), Words{});
    EXPECT_EQ(turn(*inbox_, BusySpell::kDownAfter), Words{"down"});
    for (int turns = 0; turns < 100; ++turns) EXPECT_EQ(turn(*inbox_, Milliseconds{50}), Words{});
    EXPECT_EQ(other().column("SELECT message_id FROM processed"), Words{});
    unlock();
    EXPECT_EQ(turn(*inbox_, Milliseconds{50}), (Words{"up", "1 recorded"}));
    EXPECT_EQ(other().column("SELECT message_id FROM processed"), Words{"a"});
}

TEST_F(BusyStore, NothingIsAnsweredWhileItIsDownAndAllOfItAfterwards) {
    process(*inbox_, 1, "done", "one");
    inbox_->admit(2, "a", "body");
    inbox_->admit(3, "b", "body");
    EXPECT_EQ(turn(*inbox_), (Words{"2 fresh", "3 fresh"}));
    lock();
    EXPECT_EQ(record(*inbox_, 2), Words{});
    EXPECT_EQ(turn(*inbox_, BusySpell::kDownAfter), Words{"down"});
    inbox_->admit(4, "done", "one");
    inbox_->admit(5, "done", "two");
    inbox_->admit(6, "new", "body");
    inbox_->record({3, Outcome::rejected, 422, ""});
    EXPECT_EQ(turn(*inbox_), Words{});
    EXPECT_GT(inbox_->watch().due, now_) << "it must not spin";
    EXPECT_EQ(turn(*inbox_, Milliseconds{150}), Words{});
    unlock();
    EXPECT_EQ(turn(*inbox_, Milliseconds{50}), (Words{"up", "2 recorded", "3 recorded", "4 done", "6 fresh"}));
    EXPECT_EQ(turn(*inbox_), Words{"5 done, other body"});
}

TEST_F(BusyStore, TheRetriesAreNotFasterThanTheWatchSays) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    lock();
    EXPECT_EQ(record(*inbox_, 1), Words{});
    int turns = 0;
    const TimePoint end = now_ + Milliseconds{10'000};
    for (; now_ < end; ++turns) {
        ASSERT_GT(inbox_->watch().due, now_);
        turn(*inbox_, std::chrono::duration_cast<Milliseconds>(inbox_->watch().due - now_));
    }
    EXPECT_LT(turns, 420);
}

TEST_F(BusyStore, AfterAMinuteItIsBrokenForGood) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    lock();
    EXPECT_EQ(record(*inbox_, 1), Words{});
    EXPECT_EQ(turn(*inbox_, Milliseconds{59'999}), Words{"down"});
    const auto events = inbox_->turn(now_ += Milliseconds{50});
    ASSERT_EQ(words(events), Words{"broken"});
    EXPECT_EQ(std::get<inbox_event::Broken>(events[0]).reason,
              "store '" + path().string() + "': has been busy for 60 s: database is locked");
    unlock();
    EXPECT_EQ(turn(*inbox_, Milliseconds{50}), Words{});
    EXPECT_EQ(inbox_->watch().due, TimePoint::max());
    EXPECT_EQ(other().column("SELECT message_id FROM processed"), Words{});
    EXPECT_EQ(admit(*open(), 2, "a"), Words{"2 held"}) << "an outcome that is not on disk keeps its id to the end";
}

TEST_F(BusyStore, ABrokenOneAnswersNothing) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    lock();
    EXPECT_EQ(record(*inbox_, 1), Words{});
    EXPECT_EQ(turn(*inbox_, BusySpell::kGivesUpAfter), Words{"broken"});
    unlock();
    EXPECT_EQ(admit(*inbox_, 2, "b"), Words{});
    inbox_->release(1);
    inbox_->release(2);
    EXPECT_EQ(turn(*inbox_, Milliseconds{1000}), Words{});
}

TEST_F(BusyStore, ATicketReleasedMeanwhileLeavesNothingBehind) {
    process(*inbox_, 1, "a", "one");
    EXPECT_EQ(admit(*inbox_, 2, "a", "two"), Words{});
    lock();
    EXPECT_EQ(turn(*inbox_), Words{});
    EXPECT_EQ(turn(*inbox_, BusySpell::kDownAfter), Words{"down"});
    inbox_->release(2);
    unlock();
    EXPECT_EQ(turn(*inbox_, Milliseconds{50}), Words{"up"}) << "proved by a commit, though there is nothing to write";
    EXPECT_EQ(inbox_->watch().due, TimePoint::max());
}

// A consumer was killed and another one is restoring the index of the WAL: nobody can even read meanwhile.
int restore_the_index(const std::filesystem::path& shm, int told) {
    const int fd = open(shm.c_str(), O_RDWR | O_CLOEXEC);
    const std::array<char, 96> nothing{};
    for (const off_t byte : {120, 122}) {  // write and recover lock: https://sqlite.org/walformat.html, section 2.3
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_start = byte;
        lock.l_len = 1;
        if (fcntl(fd, F_SETLK, &lock) != 0) return 1;
    }
    if (pwrite(fd, nothing.data(), nothing.size(), 0) != std::ssize(nothing) || write(told, "r", 1) != 1) return 1;
    return pause();
}

TEST_F(BusyStore, AStoreThatCannotBeReadIsWaitedForAsWell) {
    process(*inbox_, 1, "a");
    std::array<int, 2> told{};
    ASSERT_EQ(pipe(told.data()), 0);
    const pid_t child = start_child([&] { return restore_the_index(path().string() + "-shm", told[1]); });
    char byte = 0;
    ASSERT_EQ(read(told[0], &byte, 1), 1);
    EXPECT_EQ(admit(*inbox_, 2, "a"), Words{});
    EXPECT_EQ(admit(*inbox_, 3, "b"), Words{});
    EXPECT_GT(inbox_->watch().due, now_) << "it must not spin";
    EXPECT_EQ(turn(*inbox_, BusySpell::kDownAfter), Words{"down"});
    ASSERT_EQ(kill(child, SIGKILL), 0);
    EXPECT_EQ(status_of(child), 128 + SIGKILL);
    EXPECT_EQ(turn(*inbox_, Milliseconds{50}), (Words{"up", "2 done", "3 fresh"}));
    for (const int end : told) close(end);
}

struct Spell {
    Milliseconds at;
    BusySpell::Meaning meaning;
};
class BusySpellAt : public testing::TestWithParam<Spell> {};

TEST_P(BusySpellAt, Means) {
    const TimePoint start{std::chrono::hours{5}};
    BusySpell spell;
    EXPECT_EQ(spell.busy(start), BusySpell::Meaning::try_again);
    EXPECT_EQ(spell.busy(start + GetParam().at), GetParam().meaning);
}

INSTANTIATE_TEST_SUITE_P(Table, BusySpellAt,
                         testing::Values(Spell{Milliseconds{0}, BusySpell::Meaning::try_again},
                                         Spell{Milliseconds{499}, BusySpell::Meaning::try_again},
                                         Spell{Milliseconds{500}, BusySpell::Meaning::goes_down},
                                         Spell{Milliseconds{59'999}, BusySpell::Meaning::goes_down},
                                         Spell{Milliseconds{60'000}, BusySpell::Meaning::gives_up}));

TEST(BusySpell, IsOverWhenTheStoreWorksAndTheNextOneCountsAnew) {
    const TimePoint start{std::chrono::hours{5}};
    BusySpell spell;
    EXPECT_EQ(spell.works(), BusySpell::Was::none);
    (void)spell.busy(start);
    EXPECT_EQ(spell.works(), BusySpell::Was::short_wait);
    (void)spell.busy(start);
    EXPECT_EQ(spell.busy(start + Milliseconds{501}), BusySpell::Meaning::goes_down);
    EXPECT_EQ(spell.busy(start + Milliseconds{600}), BusySpell::Meaning::is_down);
    EXPECT_EQ(spell.works(), BusySpell::Was::down);
    EXPECT_FALSE(spell.active());
    EXPECT_EQ(spell.busy(start + Milliseconds{60'001}), BusySpell::Meaning::try_again);
}

TEST(BusySpell, PausesLongerAndLongerUpToABound) {
    TimePoint now{std::chrono::hours{5}};
    BusySpell spell;
    std::vector<long> pauses;
    for (int tries = 0; tries < 7; ++tries) {
        (void)spell.busy(now);
        pauses.push_back((spell.try_again_at() - now) / Milliseconds{1});
        now = spell.try_again_at();
    }
    EXPECT_EQ(pauses, (std::vector<long>{1, 2, 4, 8, 16, 25, 25}));
}

// --- for good ---

class BrokenStore : public StoreTest {
protected:
    // The reason of the Broken that must be the only event.
    std::string broken(Inbox& inbox) {
        const auto events = inbox.turn(now_);
        EXPECT_EQ(words(events), Words{"broken"});
        return events.empty() ? "" : std::get<inbox_event::Broken>(events[0]).reason;
    }
    std::unique_ptr<Inbox> inbox_ = open();
};

TEST_F(BrokenStore, WhatDoesNotFitIsNotRecorded) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    inbox_->record({1, Outcome::accepted, 201, ""});
    {
        const FileSizeLimit limit(std::filesystem::file_size(path().string() + "-wal"));
        EXPECT_NE(broken(*inbox_).find(path().string()), std::string::npos);
    }
    EXPECT_EQ(turn(*inbox_), Words{}) << "nor afterwards, when there is room again";
    inbox_.reset();
    EXPECT_EQ(admit(*open(), 1, "a"), Words{"1 fresh"});
}

TEST_F(BrokenStore, AnOtherBodyThatDoesNotFitIsNotAnswered) {
    process(*inbox_, 1, "a", "one");
    const std::string large(100'000, 'x');
    EXPECT_EQ(admit(*inbox_, 2, "a", large), Words{});
    const FileSizeLimit limit(std::filesystem::file_size(path().string() + "-wal") + 20'000);
    EXPECT_NE(broken(*inbox_), "");
}

TEST_F(BrokenStore, ATableThatIsGone) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    inbox_->record({1, Outcome::accepted, 201, ""});
    other().run("DROP TABLE processed");
    EXPECT_EQ(broken(*inbox_), "store '" + path().string() + "': no such table: processed");
}

class BrokenStoreFile : public BrokenStore, public testing::WithParamInterface<std::string> {
protected:
    [[nodiscard]] std::filesystem::path file() const { return path().string() + GetParam(); }
};

TEST_P(BrokenStoreFile, DeletedIsNoticedBeforeARecord) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    inbox_->record({1, Outcome::accepted, 201, ""});
    std::filesystem::remove(file());
    EXPECT_EQ(broken(*inbox_), "store '" + path().string() + "': " + file().filename().string() + " was deleted");
}

TEST_P(BrokenStoreFile, DeletedIsNoticedBeforeACall) {
    std::filesystem::remove(file());
    inbox_->admit(1, "a", "body");
    EXPECT_NE(broken(*inbox_), "");
}

TEST_P(BrokenStoreFile, SwappedIsNoticedAndTheNewOneLeftAsItIs) {
    EXPECT_EQ(admit(*inbox_, 1, "a"), Words{"1 fresh"});
    inbox_->record({1, Outcome::accepted, 201, ""});
    const auto swapped = folder_.path() / "swapped";
    std::filesystem::copy_file(file(), swapped);
    const std::string bytes = bytes_of(swapped);
    std::filesystem::rename(swapped, file());
    EXPECT_EQ(broken(*inbox_),
              "store '" + path().string() + "': " + file().filename().string() + " was replaced by another file");
    inbox_.reset();
    EXPECT_TRUE(bytes_of(file()) == bytes);
}

INSTANTIATE_TEST_SUITE_P(All, BrokenStoreFile, testing::Values("", "-wal", "-shm", "-inflight"),
                         [](const auto& test) { return test.index == 0 ? "db" : test.param.substr(1); });

TEST_F(BrokenStore, ALinkThatLeadsElsewhereIsNoticed) {
    const auto link = folder_.path() / "link.db";
    const auto elsewhere = folder_.path() / "elsewhere.db";
    (void)open_sqlite_inbox({.path = elsewhere});
    std::filesystem::create_symlink(path(), link);
    const auto linked = open_sqlite_inbox({.path = link});
    std::filesystem::remove(link);
    std::filesystem::create_symlink(elsewhere, link);
    linked->admit(1, "a", "body");
    EXPECT_NE(broken(*linked).find("link.db was replaced"), std::string::npos);
}

}  // namespace
}  // namespace claimq::store_test
