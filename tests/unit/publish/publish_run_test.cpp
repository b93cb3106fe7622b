// What publish does while the broker works: the window, the results, the input.
#include "publish/publish_run.hpp"

#include "publish_world.hpp"

namespace claimq::publish {
namespace {

class PublishRunTest : public PublishWorld {};

// ---- the plain way

TEST_F(PublishRunTest, AConfirmedClaimIsPublished) {
    broker_.confirm_after(5ms);
    const auto path = folder_.file("claim.json", claim("g1"));
    EXPECT_EQ(run_on({path}), ExitStatus::ok);
    EXPECT_EQ(report_.words, Words{"g1 confirmed"});
    EXPECT_EQ(broker_.least_attempts(), std::vector<int>{1});
    EXPECT_EQ(broker_.session(1).sent.at(0).body, claim("g1"));
    EXPECT_TRUE(broker_.session(1).said_goodbye);
    EXPECT_EQ(report_.troubles, Words{});
    EXPECT_TRUE(report_.notices.empty());
}

TEST_F(PublishRunTest, ItEndsWithTheLastConfirm) {
    broker_.confirm_after(5ms);
    EXPECT_EQ(run(numbered(3)), ExitStatus::ok);
    EXPECT_EQ(passed(), 5ms);
}

TEST_F(PublishRunTest, AllClaimsShareOneConnection) {
    broker_.confirm_after(1ms);
    const auto one = folder_.file("one.json", claim("one"));
    const auto many = folder_.file("many.ndjson", lines(numbered(20)));
    EXPECT_EQ(run_on({one, many, one}), ExitStatus::ok);
    EXPECT_EQ(broker_.sessions().size(), 1u);
    EXPECT_EQ(broker_.session(1).sent.size(), 22u);
    EXPECT_EQ(report_.words.size(), 22u);
    EXPECT_EQ(report_.places.at(7), "g7 7");
}

TEST_F(PublishRunTest, ConfirmsMayComeOutOfOrderAndInBulk) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (tag != 5) return;
        broker_.confirm(session, 4);
        broker_.confirm(session, 2);
        broker_.confirm(session, 3, Multiple::yes);
        broker_.confirm(session, 5);
    };
    EXPECT_EQ(run(numbered(5)), ExitStatus::ok);
    EXPECT_EQ(report_.words, (Words{"g4 confirmed", "g2 confirmed", "g1 confirmed", "g3 confirmed", "g5 confirmed"}));
}

TEST_F(PublishRunTest, ConfirmsOfUnknownTagsMeanNothing) {
    broker_.on_publish = [this](Session& session, std::uint64_t) {
        FakeBroker::say(session, publish_event::Confirmed{7, Multiple::no, Confirm::ack});
        FakeBroker::say(session, publish_event::Confirmed{7, Multiple::yes, Confirm::ack});
        FakeBroker::say(session, publish_event::Confirmed{0, Multiple::no, Confirm::ack});
        FakeBroker::say(session, publish_event::Returned{"somebody else's", "312 NO_ROUTE"});
        after(1s, [this, &session] { broker_.confirm(session, 1); });
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::ok);
    EXPECT_EQ(passed(), 1s);
}

// ---- the window

TEST_F(PublishRunTest, NoMoreThanTheWindowIsUnconfirmed) {
    options_.window = 3;
    std::size_t most = 0;
    broker_.on_publish = [&](Session& session, std::uint64_t tag) {
        most = std::max(most, session.unconfirmed());
        after(Milliseconds{100 / tag}, [this, &session, tag] { broker_.confirm(session, tag); });
    };
    EXPECT_EQ(run(numbered(50)), ExitStatus::ok);
    EXPECT_EQ(most, 3u);
    EXPECT_EQ(report_.times.size(), 50u);
}

TEST_F(PublishRunTest, AWindowOf1IsStrictlyOneAfterTheOther) {
    options_.window = 1;
    broker_.on_publish = [&](Session& session, std::uint64_t tag) {
        EXPECT_EQ(session.unconfirmed(), 1u);
        after(10ms, [this, &session, tag] { broker_.confirm(session, tag); });
    };
    EXPECT_EQ(run(numbered(5)), ExitStatus::ok);
    EXPECT_EQ(passed(), 50ms);
}

TEST_F(PublishRunTest, NoMoreThan8MiBAreUnconfirmedButAlwaysOneClaimIs) {
    std::size_t most = 0;
    broker_.on_publish = [&](Session& session, std::uint64_t tag) {
        std::size_t bytes = 0;
        for (const auto& sent : session.sent) bytes += sent.confirmed ? 0 : sent.body.size();
        if (session.unconfirmed() > 1) most = std::max(most, bytes);
        after(10ms, [this, &session, tag] { broker_.confirm(session, tag); });
    };
    std::string text;
    for (const auto& [guid, size] : std::map<std::string, std::size_t>{
             {"g1", 3'000'000}, {"g2", 3'000'000}, {"g3", 3'000'000}, {"g4", 8'500'000}, {"g5", 10}})
        text += claim(guid) + std::string(size, ' ') + "\n";
    EXPECT_EQ(run(text), ExitStatus::ok);
    EXPECT_GT(most, 6'000'000u);
    EXPECT_LE(most, 8u * 1'048'576u);
    EXPECT_EQ(report_.words, each(numbered(5), "confirmed"));
}

TEST_F(PublishRunTest, AChannelThatIsNotReadyIsWaitedFor) {
    broker_.on_open = [this](Session& session) {
        session.ready = false;
        after(2s, [&session] {
            session.ready = true;
            FakeBroker::say(session, publish_event::Progress{});
        });
    };
    broker_.confirm_after(1ms);
    EXPECT_EQ(run(numbered(3)), ExitStatus::ok);
    EXPECT_EQ(passed(), 2001ms);
}

// ---- refusals

TEST_F(PublishRunTest, WhatIsReturnedIsUnroutableAlthoughItIsAcked) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (tag == 2) FakeBroker::say(session, publish_event::Returned{"g2", "312 NO_ROUTE"});
        broker_.confirm(session, tag);
    };
    EXPECT_EQ(run(numbered(3)), ExitStatus::refused);
    EXPECT_EQ(report_.words, (Words{"g1 confirmed", "g2 returned: 312 NO_ROUTE", "g3 confirmed"}));
    EXPECT_TRUE(broker_.session(1).said_goodbye);
}

TEST_F(PublishRunTest, WhatIsNackedIsRefused) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (tag == 3) broker_.confirm(session, 2, Multiple::yes, Confirm::nack);
        if (tag == 3) broker_.confirm(session, 3);
    };
    EXPECT_EQ(run(numbered(3)), ExitStatus::refused);
    EXPECT_EQ(report_.words, (Words{"g1 nacked", "g2 nacked", "g3 confirmed"}));
}

// RabbitMQ closes the channel over the second claim, and drops what follows on it.
TEST_F(PublishRunTest, WhatIsTooLargeIsRefusedAndTheOthersAreSentAgain) {
    const auto large = claim("g2", 5000);
    broker_.on_publish = [&](Session& session, std::uint64_t tag) {
        if (session.sent[tag - 1].body == large)
            FakeBroker::say(session, publish_event::ChannelClosed{406, "PRECONDITION_FAILED - message size " +
                                                                           std::to_string(large.size()) +
                                                                           " larger than max size 4096"});
        if (session.number == 2) broker_.confirm(session, tag);
    };
    EXPECT_EQ(run(claim("g1") + "\n" + large + "\n" + claim("g3", 9000) + "\n" + claim("g4") + "\n"),
              ExitStatus::refused);
    EXPECT_EQ(report_.words, (Words{"g2 too-large: PRECONDITION_FAILED - message size " + std::to_string(large.size()) +
                                        " larger than max size 4096",
                                    "g1 confirmed", "g3 confirmed", "g4 confirmed"}));
    EXPECT_EQ(broker_.session(2).guids(), (Words{"g1", "g3", "g4"}));
}

TEST_F(PublishRunTest, EveryTooLargeClaimIsRefusedByItself) {
    broker_.on_publish = [&](Session& session, std::uint64_t tag) {
        for (const auto& event : session.events)
            if (std::holds_alternative<publish_event::ChannelClosed>(event)) return;
        const auto size = session.sent[tag - 1].body.size();
        if (size > 4096)
            FakeBroker::say(session, publish_event::ChannelClosed{406, "PRECONDITION_FAILED - message size " +
                                                                           std::to_string(size) +
                                                                           " larger than configured max size 4096"});
        else
            broker_.confirm(session, tag);
    };
    std::string text;
    for (int number = 1; number <= 9; ++number)
        text +=
            claim("g" + std::to_string(number), number % 3 == 0 ? 5000 + static_cast<std::size_t>(number) : 0) + "\n";
    EXPECT_EQ(run(text), ExitStatus::refused);
    EXPECT_EQ(report_.times.size(), 9u);
    EXPECT_EQ(report_.confirmed.size(), 6u);
    EXPECT_EQ(report_.words.size(), 9u) << "nobody is told of twice";
    EXPECT_EQ(broker_.sessions().size(), 3u) << "after the last of them nothing is left to send";
}

TEST_F(PublishRunTest, TwoClaimsWithOneGuidAreTwoClaims) {
    broker_.confirm_after(1ms);
    EXPECT_EQ(run(Words{"g", "g"}), ExitStatus::ok);
    EXPECT_EQ(report_.words, (Words{"g confirmed", "g confirmed"}));
    EXPECT_EQ(report_.places, (Words{"g 1", "g 2"}));
}

// ---- the input

TEST_F(PublishRunTest, BadInputsDoNotStopTheOthers) {
    broker_.confirm_after(1ms);
    const auto good = folder_.file("good.json", claim("good"));
    const auto mixed = folder_.file("mixed.ndjson", "nonsense\n" + claim("g1") + "\n[]\n" + claim("g2") + "\n");
    EXPECT_EQ(run_on({folder_.path("missing"), good, mixed}), ExitStatus::data);
    EXPECT_EQ(report_.words, (Words{"good confirmed", "g1 confirmed", "g2 confirmed"}));
    EXPECT_EQ(report_.bad, (Words{"66 line 0: No such file or directory", "65 line 1: no JSON: syntax error at byte 2",
                                  "65 line 3: a claim is a JSON object"}));
    EXPECT_EQ(report_.troubles, Words{});
}

TEST_F(PublishRunTest, WithNoValidClaimNoConnectionIsMade) {
    const struct {
        std::vector<std::string> files;
        ExitStatus status;
    } rows[] = {
        {{folder_.file("empty", "")}, ExitStatus::data},
        {{folder_.path("missing")}, ExitStatus::no_input},
        {{folder_.path("missing"), folder_.file("array", "[]")}, ExitStatus::data},
        {{folder_.path()}, ExitStatus::no_input},
        {{folder_.file("bad.ndjson", "1\n2\n")}, ExitStatus::data},
        {{folder_.file("blank.ndjson", "\n\n")}, ExitStatus::ok},
    };
    for (const auto& row : rows) EXPECT_EQ(run_on(row.files), row.status) << row.files.front();
    EXPECT_TRUE(broker_.least_attempts().empty());
    EXPECT_EQ(report_.words, Words{});
}

TEST_F(PublishRunTest, ARefusalIsGraverThanABadInput) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        broker_.confirm(session, tag, Multiple::no, Confirm::nack);
    };
    EXPECT_EQ(run(claim("g1") + "\nnonsense\n"), ExitStatus::refused);
}

// However much of the input is bad, the connection is served and the errors are shown meanwhile.
TEST_F(PublishRunTest, AFloodOfBadInputDoesNotStopTheTurns) {
    broker_.confirm_after(1ms);
    std::string text = claim("g1") + "\n";
    for (int line = 0; line < 20'000; ++line) text += "y\n";
    EXPECT_EQ(run(text + claim("g2") + "\n"), ExitStatus::data);
    EXPECT_EQ(report_.words, (Words{"g1 confirmed", "g2 confirmed"}));
    EXPECT_EQ(report_.bad.size(), 20'000u);
    EXPECT_LE(report_.most_bad_in_a_turn, 1000);
}

TEST_F(PublishRunTest, AConfirmIsToldWhileTheInputIsSilent) {
    broker_.confirm_after(1s);
    type(0ms, lines({"g1"}));
    clock_.at(FakeClock::start + 5s, [this] { EXPECT_EQ(report_.words, Words{"g1 confirmed"}); });
    type(10s, lines({"g2"}));
    end_input(20s);
    EXPECT_EQ(run_on_pipe(), ExitStatus::ok);
    EXPECT_EQ(report_.words, (Words{"g1 confirmed", "g2 confirmed"}));
    EXPECT_EQ(broker_.sessions().size(), 1u);
    EXPECT_EQ(passed(), 20s);
}

TEST_F(PublishRunTest, AClaimIsSentAsSoonAsItsLineIsWhole) {
    broker_.confirm_after(1ms);
    type(1s, claim("g1").substr(0, 5));
    type(2s, claim("g1").substr(5));
    clock_.at(FakeClock::start + 2500ms, [this] { EXPECT_TRUE(broker_.sessions().empty()); });
    type(3s, "\n");
    clock_.at(FakeClock::start + 3500ms, [this] { EXPECT_EQ(report_.words, Words{"g1 confirmed"}); });
    end_input(60s);
    EXPECT_EQ(run_on_pipe(), ExitStatus::ok);
}

TEST_F(PublishRunTest, ASilentInputIsNoConfirmTimeout) {
    broker_.confirm_after(1ms);
    type(0ms, lines({"g1"}));
    type(1h, lines({"g2"}));
    end_input(2h);
    EXPECT_EQ(run_on_pipe(), ExitStatus::ok);
    EXPECT_EQ(passed(), Milliseconds{2h});
}

TEST_F(PublishRunTest, TheInputIsReadOnWhileConfirmsAreAwaited) {
    type(0ms, lines({"g1"}));
    type(1s, lines({"g2"}));
    type(2s, lines({"g3"}));
    end_input(3s);
    clock_.at(FakeClock::start + 4s, [this] { broker_.confirm_all(broker_.session(1)); });
    EXPECT_EQ(run_on_pipe(), ExitStatus::ok);
    EXPECT_EQ(report_.words, each(numbered(3), "confirmed"));
    EXPECT_EQ(passed(), 4s);
}

}  // namespace
}  // namespace claimq::publish
