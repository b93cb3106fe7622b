// One consumer on its store: what is answered, in which order, and what is then on disk.
#include "store/sqlite_inbox.hpp"

#include "store_fixture.hpp"

namespace claimq::store_test {
namespace {

class SqliteInbox : public StoreTest {};

// --- admission ---

TEST_F(SqliteInbox, AnUnknownIdIsFresh) {
    const auto inbox = open();
    EXPECT_EQ(admit(*inbox, 1, "a"), Words{"1 fresh"});
    EXPECT_EQ(turn(*inbox), Words{});
}

TEST_F(SqliteInbox, AProcessedIdIsDone) {
    const auto inbox = open();
    process(*inbox, 1, "a");
    EXPECT_EQ(admit(*inbox, 2, "a"), Words{"2 done"});
}

TEST_F(SqliteInbox, AProcessedIdIsDoneAfterARestart) {
    process(*open(), 1, "a");
    EXPECT_EQ(admit(*open(), 2, "a"), Words{"2 done"});
}

TEST_F(SqliteInbox, AnotherBodyOfAProcessedIdIsOnDiskBeforeItIsAnswered) {
    const auto inbox = open();
    process(*inbox, 1, "a", "one");
    EXPECT_EQ(admit(*inbox, 2, "a", "two"), Words{});
    EXPECT_EQ(other().column("SELECT body FROM other_bodies"), Words{});
    EXPECT_LE(inbox->watch().due, now_) << "the write is not waited for";
    EXPECT_EQ(turn(*inbox), Words{"2 done, other body"});
    EXPECT_EQ(other().column("SELECT message_id || ':' || body FROM other_bodies"), Words{"a:two"});
    EXPECT_EQ(inbox->watch().due, TimePoint::max());
}

TEST_F(SqliteInbox, TheSameOtherBodyIsKeptOnce) {
    const auto inbox = open();
    process(*inbox, 1, "a", "one");
    for (Ticket ticket = 2; ticket < 5; ++ticket) inbox->admit(ticket, "a", "two");
    inbox->admit(5, "a", "three");
    EXPECT_EQ(turn(*inbox), Words{});
    EXPECT_EQ(turn(*inbox),
              (Words{"2 done, other body", "3 done, other body", "4 done, other body", "5 done, other body"}));
    EXPECT_EQ(other().column("SELECT body FROM other_bodies ORDER BY rowid"), (Words{"two", "three"}));
}

TEST_F(SqliteInbox, AnEmptyBodyIsABodyLikeAnyOther) {
    const auto inbox = open();
    process(*inbox, 1, "a", "");
    EXPECT_EQ(admit(*inbox, 2, "a", std::string_view{}), Words{"2 done"});
    process(*inbox, 3, "b", "some");
    EXPECT_EQ(admit(*inbox, 4, "b", std::string_view{}), Words{});
    EXPECT_EQ(turn(*inbox), Words{"4 done, other body"});
    EXPECT_EQ(other().value("SELECT typeof(body) || length(body) FROM other_bodies"), "blob0");
}

TEST_F(SqliteInbox, TheSecondTicketOfOneIdIsHeldAndToldSoOnce) {
    const auto inbox = open();
    inbox->admit(1, "a", "body");
    inbox->admit(2, "a", "body");
    inbox->admit(3, "b", "body");
    EXPECT_EQ(turn(*inbox), (Words{"1 fresh", "3 fresh", "2 held"}));
    for (int turns = 0; turns < 5; ++turns) EXPECT_EQ(turn(*inbox, Milliseconds{150}), Words{});
    EXPECT_EQ(admit(*inbox, 4, "a"), Words{"4 held"});
    EXPECT_EQ(inbox->watch().due, TimePoint::max()) << "nobody asks for what this process has itself";
}

TEST_F(SqliteInbox, TheHeldOneIsDoneInTheTurnThatRecordsTheFirst) {
    const auto inbox = open();
    inbox->admit(1, "a", "body");
    inbox->admit(2, "a", "body");
    inbox->admit(3, "a", "body");
    EXPECT_EQ(turn(*inbox), (Words{"1 fresh", "2 held", "3 held"}));
    EXPECT_EQ(record(*inbox, 1), (Words{"1 recorded", "2 done", "3 done"}));
}

TEST_F(SqliteInbox, TheHeldOneWithAnotherBodyIsDoneWithThatBodyKept) {
    const auto inbox = open();
    inbox->admit(1, "a", "one");
    inbox->admit(2, "a", "two");
    inbox->admit(3, "a", "one");
    EXPECT_EQ(turn(*inbox), (Words{"1 fresh", "2 held", "3 held"}));
    EXPECT_EQ(record(*inbox, 1), (Words{"1 recorded", "3 done"}));
    EXPECT_EQ(turn(*inbox), Words{"2 done, other body"});
    EXPECT_EQ(other().column("SELECT body FROM other_bodies"), Words{"two"});
}

TEST_F(SqliteInbox, TheHeldOneIsFreshWhenTheFirstIsReleased) {
    const auto inbox = open();
    for (Ticket ticket = 1; ticket < 4; ++ticket) inbox->admit(ticket, "a", "body");
    EXPECT_EQ(turn(*inbox), (Words{"1 fresh", "2 held", "3 held"}));
    inbox->release(1);
    EXPECT_LE(inbox->watch().due, now_);
    EXPECT_EQ(turn(*inbox), Words{"2 fresh"});
    inbox->release(2);
    EXPECT_EQ(turn(*inbox), Words{"3 fresh"});
}

struct Unprocessed {
    Outcome outcome;
    std::string_view name;
};
class SqliteInboxUnprocessed : public StoreTest, public testing::WithParamInterface<Unprocessed> {};

TEST_P(SqliteInboxUnprocessed, IsKeptAsAFactAndMayBeCalledAgain) {
    const auto inbox = open();
    inbox->admit(1, "a", "body");
    inbox->admit(2, "a", "body");
    EXPECT_EQ(turn(*inbox), (Words{"1 fresh", "2 held"}));
    EXPECT_EQ(record(*inbox, 1, GetParam().outcome, 422), (Words{"1 recorded", "2 fresh"}));
    EXPECT_EQ(other().column("SELECT message_id FROM processed"), Words{});
    EXPECT_EQ(other().value("SELECT message_id || ' ' || outcome || ' ' || status || ' ' || reason FROM dead_letters"),
              "a " + std::string(GetParam().name) + " 422 reason");
}

INSTANTIATE_TEST_SUITE_P(All, SqliteInboxUnprocessed,
                         testing::Values(Unprocessed{Outcome::rejected, "rejected"},
                                         Unprocessed{Outcome::failed, "failed"}),
                         [](const auto& test) { return std::string(test.param.name); });

// --- gathering ---

TEST_F(SqliteInbox, ARecordWaitsForOthersToShareItsCommitButNotForLong) {
    const auto inbox = open_sqlite_inbox({.path = path(), .gather_at_most = std::chrono::microseconds{1}});
    process(*inbox, 1, "a");  // the first commit, after which it is known that one takes longer than that
    for (Ticket ticket = 2; ticket < 5; ++ticket) inbox->admit(ticket, std::to_string(ticket), "body");
    EXPECT_EQ(turn(*inbox), (Words{"2 fresh", "3 fresh", "4 fresh"}));
    EXPECT_EQ(record(*inbox, 2), Words{});
    EXPECT_EQ(inbox->watch().due, now_ + std::chrono::microseconds{1});
    EXPECT_EQ(record(*inbox, 3), Words{});
    EXPECT_EQ(turn(*inbox, Milliseconds{1}), (Words{"2 recorded", "3 recorded"}));
    EXPECT_EQ(record(*inbox, 4), Words{"4 recorded"}) << "nothing else is in hand";
}

// --- release ---

TEST_F(SqliteInbox, AReleasedTicketIsNotAnsweredAnyMore) {
    const auto inbox = open();
    inbox->admit(1, "a", "body");
    inbox->release(1);
    inbox->admit(2, "a", "body");
    inbox->admit(3, "a", "body");
    EXPECT_EQ(turn(*inbox), (Words{"2 fresh", "3 held"}));
    inbox->release(3);
    EXPECT_EQ(record(*inbox, 2), Words{"2 recorded"});
}

TEST_F(SqliteInbox, ReleasingTheUnknownAndTheDoneIsIgnored) {
    const auto inbox = open();
    inbox->release(77);
    process(*inbox, 1, "a");
    inbox->release(1);
    EXPECT_EQ(admit(*inbox, 2, "a"), Words{"2 done"});
    inbox->release(2);
    EXPECT_EQ(turn(*inbox), Words{});
}

TEST_F(SqliteInbox, AReleasedOtherBodyIsNotTouchedAnyMore) {
    const auto inbox = open();
    process(*inbox, 1, "a", "one");
    {
        const std::string body(1000, 'x');  // its memory is gone after the release: the sanitizer watches
        EXPECT_EQ(admit(*inbox, 2, "a", body), Words{});
        inbox->release(2);
    }
    EXPECT_EQ(turn(*inbox), Words{});
    EXPECT_EQ(other().column("SELECT body FROM other_bodies"), Words{});
}

TEST_F(SqliteInbox, TheBodyOfAFreshTicketIsNotNeededAnyMore) {
    const auto inbox = open();
    {
        const std::string body(1000, 'x');
        EXPECT_EQ(admit(*inbox, 1, "a", body), Words{"1 fresh"});
    }
    EXPECT_EQ(record(*inbox, 1), Words{"1 recorded"});
    EXPECT_EQ(admit(*inbox, 2, "a", std::string(1000, 'x')), Words{"2 done"});
}

TEST_F(SqliteInbox, AnOutcomeThatWasHandedInIsRecordedThoughTheTicketIsReleased) {
    const auto inbox = open();
    EXPECT_EQ(admit(*inbox, 1, "a"), Words{"1 fresh"});
    inbox->record({1, Outcome::accepted, 201, ""});
    inbox->release(1);
    EXPECT_EQ(turn(*inbox), Words{"1 recorded"});
    EXPECT_EQ(other().column("SELECT message_id FROM processed"), Words{"a"});
}

// --- what is on disk ---

TEST_F(SqliteInbox, WhatIsRecordedIsReadByOthers) {
    const auto inbox = open_sqlite_inbox({.path = path(), .wall_clock = [] {
                                              using namespace std::chrono;
                                              return sys_days{2026y / July / 31} + 8h + 5min + 9s + 42ms;
                                          }});
    for (Ticket ticket = 1; ticket < 4; ++ticket) inbox->admit(ticket, std::string(ticket, 'a'), "body");
    EXPECT_EQ(turn(*inbox), (Words{"1 fresh", "2 fresh", "3 fresh"}));
    inbox->record({3, Outcome::accepted, 201, ""});
    inbox->record({1, Outcome::accepted, 200, ""});
    EXPECT_EQ(turn(*inbox), (Words{"3 recorded", "1 recorded"}));
    EXPECT_EQ(other().column("SELECT message_id || ' ' || status || ' ' || at FROM processed"),
              (Words{"aaa 201 2026-07-31T08:05:09.042Z", "a 200 2026-07-31T08:05:09.042Z"}));
}

TEST_F(SqliteInbox, NothingIsRecordedOrAnsweredBeforeTheTurn) {
    const auto inbox = open();
    EXPECT_EQ(admit(*inbox, 1, "a"), Words{"1 fresh"});
    inbox->record({1, Outcome::accepted, 201, ""});
    EXPECT_LE(inbox->watch().due, now_);
    EXPECT_EQ(other().column("SELECT message_id FROM processed"), Words{});
    EXPECT_EQ(turn(*inbox), Words{"1 recorded"});
}

TEST_F(SqliteInbox, AnIdThatIsThereAlreadyStaysAsItIs) {
    const auto inbox = open();
    inbox->admit(1, "a", "body");
    inbox->admit(2, "b", "body");
    EXPECT_EQ(turn(*inbox), (Words{"1 fresh", "2 fresh"}));
    other().run("INSERT INTO processed VALUES('a', x'00', 299, 'by hand')");
    inbox->record({1, Outcome::accepted, 201, ""});
    inbox->record({2, Outcome::accepted, 201, ""});
    EXPECT_EQ(turn(*inbox), (Words{"1 recorded", "2 recorded"}));
    EXPECT_EQ(other().column("SELECT status FROM processed"), (Words{"299", "201"}));
}

class SqliteInboxId : public StoreTest, public testing::WithParamInterface<std::string> {};

TEST_P(SqliteInboxId, IsKeptToTheByte) {
    const auto inbox = open();
    process(*inbox, 1, GetParam());
    EXPECT_EQ(other().column("SELECT message_id FROM processed"), Words{GetParam()});
    EXPECT_EQ(other().value("SELECT typeof(message_id) FROM processed"), "text");
    EXPECT_EQ(admit(*inbox, 2, GetParam()), Words{"2 done"});
    EXPECT_EQ(admit(*inbox, 3, GetParam() + "x"), Words{"3 fresh"});
    EXPECT_EQ(admit(*inbox, 4, GetParam().substr(0, GetParam().size() - 1) + "\x01"), Words{"4 fresh"});
}

using namespace std::string_literals;
INSTANTIATE_TEST_SUITE_P(All, SqliteInboxId,
                         testing::Values("a\0b"s, "\0"s, "a\0"s, "\xff\xfe\xc3"s, std::string(255, 'a'),
                                         std::string(255, '\xff'), "O'Brien; DROP TABLE processed"s, "12345"s, " a "s),
                         [](const auto& test) { return std::to_string(test.index); });

TEST_F(SqliteInbox, IdsThatDifferBehindANulByteAreTwoIds) {
    const auto inbox = open();
    process(*inbox, 1, "a\0b"s);
    EXPECT_EQ(admit(*inbox, 2, "a\0c"s), Words{"2 fresh"});
    EXPECT_EQ(admit(*inbox, 3, "a"s), Words{"3 fresh"});
}

TEST_F(SqliteInbox, ManyAtOnceAreAnsweredInTheOrderOfTheirAdmission) {
    const auto inbox = open();
    Words fresh;
    for (Ticket ticket = 1; ticket <= 2000; ++ticket) {
        inbox->admit(ticket, "id " + std::to_string(ticket), "body");
        fresh.push_back(std::to_string(ticket) + " fresh");
    }
    EXPECT_EQ(turn(*inbox), fresh);
    for (Ticket ticket = 1; ticket <= 2000; ++ticket) inbox->record({ticket, Outcome::accepted, 201, ""});
    EXPECT_EQ(turn(*inbox).size(), 2000U);
    EXPECT_EQ(other().value("SELECT count(*) FROM processed"), "2000");
}

TEST_F(SqliteInbox, AnIdleOneAsksForNothing) {
    const auto inbox = open();
    EXPECT_EQ(turn(*inbox), Words{});
    EXPECT_EQ(inbox->watch().fd, -1);
    EXPECT_EQ(inbox->watch().due, TimePoint::max());
}

}  // namespace
}  // namespace claimq::store_test
