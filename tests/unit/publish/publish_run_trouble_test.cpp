// What publish does when the broker does not work: lost, blocked, silent, closed; and at random.
#include <random>

#include "publish_world.hpp"

namespace claimq::publish {
namespace {

class PublishRunTrouble : public PublishWorld {
protected:
    // The connection breaks when so many were sent on it.
    void lose_after(std::uint64_t publishes) {
        broker_.on_publish = [publishes](Session& session, std::uint64_t tag) {
            if (tag == publishes) FakeBroker::say(session, publish_event::Lost{"reset by peer"});
        };
    }
};

const std::string and_the_rest = "; what follows in the input is not sent";

Words first_of(const Words& words, std::ptrdiff_t count) { return {words.begin(), words.begin() + count}; }

bool names(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

// ---- connecting

TEST_F(PublishRunTrouble, AFirstConnectionThatFailsEndsTheRunWithItsStatus) {
    for (const auto status : {ExitStatus::unavailable, ExitStatus::denied, ExitStatus::os_error}) {
        FakeReport report(clock_);
        ClaimSource source({folder_.file("claims.ndjson", lines(numbered(3)))}, Framing::by_name);
        PublishWaiter waiter(clock_, broker_);
        broker_.before_open = [status](int) { throw Failure(status, "broker h: refused"); };
        EXPECT_EQ(PublishRun(source, broker_.open(), waiter, report, {}).run(), status);
        EXPECT_EQ(report.words, Words{"g1 not-sent: broker h: refused"});
        EXPECT_EQ(report.troubles, Words{"broker h: refused" + and_the_rest});
    }
    EXPECT_EQ(broker_.least_attempts(), (std::vector<int>{1, 1, 1}));
}

// ---- a lost connection

TEST_F(PublishRunTrouble, WhatWasUnconfirmedIsSentAgainInOrderWithTheSameIds) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (session.number == 2) return broker_.confirm(session, tag);
        if (tag != 5) return;
        broker_.confirm(session, 2);
        FakeBroker::say(session, publish_event::Lost{"reset by peer"});
    };
    EXPECT_EQ(run(numbered(7)), ExitStatus::ok);
    EXPECT_EQ(broker_.least_attempts(), (std::vector<int>{1, 3}));
    const auto& again = broker_.session(2).sent;
    EXPECT_EQ(broker_.session(2).guids(), (Words{"g1", "g3", "g4", "g5", "g6", "g7"}));
    EXPECT_TRUE(std::ranges::all_of(again, [](const Session::Sent& sent) { return sent.body == claim(sent.guid); }));
    EXPECT_EQ(report_.words, each({"g2", "g1", "g3", "g4", "g5", "g6", "g7"}, "confirmed"));
    ASSERT_EQ(report_.notices.size(), 1u);
    EXPECT_TRUE(names(report_.notices[0].second, "reset by peer"));
    EXPECT_EQ(report_.troubles, Words{});
}

TEST_F(PublishRunTrouble, WhatTheOldConnectionStillSaidIsForgotten) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (session.number == 2) return broker_.confirm(session, tag);
        if (tag != 3) return;
        FakeBroker::say(session, publish_event::Returned{"g1", "312 NO_ROUTE"});
        FakeBroker::say(session, publish_event::Lost{"reset by peer"});
        FakeBroker::say(session, publish_event::Confirmed{3, Multiple::yes, Confirm::ack});
    };
    EXPECT_EQ(run(numbered(3)), ExitStatus::ok);
    EXPECT_EQ(broker_.session(2).guids(), numbered(3));
    EXPECT_EQ(report_.words, each(numbered(3), "confirmed"));
}

TEST_F(PublishRunTrouble, AClaimSentAgainKeepsTheTimeOfItsFirstSending) {
    std::vector<TimePoint> first_sent;
    broker_.on_publish = [&](Session& session, std::uint64_t tag) {
        first_sent.push_back(session.sent[tag - 1].claim->first_sent);
        if (session.number == 2) return broker_.confirm(session, tag);
        after(3s, [&session] { FakeBroker::say(session, publish_event::Lost{"reset by peer"}); });
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::ok);
    EXPECT_EQ(first_sent, (std::vector<TimePoint>{FakeClock::start, FakeClock::start}));
}

TEST_F(PublishRunTrouble, AReconnectThatFailsLeavesTheOutcomeUnknown) {
    options_.window = 3;
    lose_after(3);
    broker_.before_open = [](int connection) {
        if (connection > 1) throw Failure(ExitStatus::unavailable, "broker h: Connection refused");
    };
    EXPECT_EQ(run(numbered(6)), ExitStatus::unknown);
    const std::string why = ": broker h: Connection refused";
    EXPECT_EQ(report_.words, (Words{"g1 unknown" + why, "g2 unknown" + why, "g3 unknown" + why, "g4 not-sent" + why}));
    EXPECT_EQ(report_.troubles, Words{"broker h: Connection refused" + and_the_rest});
}

TEST_F(PublishRunTrouble, AReconnectThatFailsWithNothingUnconfirmedIsABrokerThatWentAway) {
    broker_.confirm_after(1ms);
    type(0ms, lines({"g1"}));
    clock_.at(FakeClock::start + 1s,
              [this] { FakeBroker::say(broker_.session(1), publish_event::Lost{"reset by peer"}); });
    type(2s, lines({"g2"}));
    end_input(3s);
    broker_.before_open = [](int connection) {
        if (connection > 1) throw Failure(ExitStatus::unavailable, "broker h: Connection refused");
    };
    EXPECT_EQ(run_on_pipe(), ExitStatus::unavailable) << "75 is for claims unconfirmed";
    EXPECT_EQ(report_.words, (Words{"g1 confirmed", "g2 not-sent: broker h: Connection refused"}));
}

TEST_F(PublishRunTrouble, AConnectionLostWhileIdleIsOpenedAgainWhenThereIsAClaim) {
    broker_.confirm_after(1ms);
    type(0ms, lines({"g1"}));
    clock_.at(FakeClock::start + 1s,
              [this] { FakeBroker::say(broker_.session(1), publish_event::Lost{"reset by peer"}); });
    clock_.at(FakeClock::start + 5s, [this] { EXPECT_EQ(broker_.sessions().size(), 1u); });
    type(10s, lines({"g2"}));
    end_input(20s);
    EXPECT_EQ(run_on_pipe(), ExitStatus::ok);
    EXPECT_EQ(report_.words, each(numbered(2), "confirmed"));
    EXPECT_EQ(broker_.sessions().size(), 2u);
}

TEST_F(PublishRunTrouble, AConnectionLostAfterTheLastConfirmIsNotMissed) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        broker_.confirm(session, tag);
        FakeBroker::say(session, publish_event::Lost{"reset by peer"});
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::ok);
    EXPECT_EQ(broker_.sessions().size(), 1u);
    EXPECT_EQ(report_.troubles, Words{});
}

TEST_F(PublishRunTrouble, ConnectionsThatAreLostAgainAndAgainEndTheRun) {
    lose_after(1);
    EXPECT_EQ(run(numbered(2)), ExitStatus::unknown);
    EXPECT_EQ(broker_.sessions().size(), 6u);
    ASSERT_FALSE(report_.troubles.empty());
    EXPECT_TRUE(names(report_.troubles[0], "reset by peer")) << report_.troubles[0];
    EXPECT_EQ(report_.times, (std::map<std::string, int>{{"g1", 1}, {"g2", 1}}));
}

TEST_F(PublishRunTrouble, ConnectionsThatAreLostBeforeAnythingIsSentAreABrokerThatIsNotThere) {
    broker_.on_open = [](Session& session) {
        session.ready = false;
        FakeBroker::say(session, publish_event::Lost{"reset by peer"});
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::unavailable);
    EXPECT_EQ(broker_.sessions().size(), 6u);
    EXPECT_EQ(report_.words, Words{"g1 not-sent: the connection was lost again and again: reset by peer"});
}

TEST_F(PublishRunTrouble, AConfirmInBetweenShowsThatItGoesOn) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (tag != 2) return;
        broker_.confirm(session, 1);
        FakeBroker::say(session, publish_event::Lost{"reset by peer"});
    };
    EXPECT_EQ(run(numbered(30)), ExitStatus::unknown) << "the last one is sent alone and never confirmed";
    EXPECT_EQ(report_.confirmed.size(), 29u);
}

TEST_F(PublishRunTrouble, AConfirmOfNothingShowsNoSuchThing) {
    broker_.on_publish = [](Session& session, std::uint64_t tag) {
        FakeBroker::say(session, publish_event::Confirmed{tag + 1000, Multiple::no, Confirm::ack});
        FakeBroker::say(session, publish_event::Lost{"reset by peer"});
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::unknown);
    EXPECT_EQ(broker_.sessions().size(), 6u);
}

// ---- a closed channel

TEST_F(PublishRunTrouble, AChannelClosedOverPermissionOrExchangeEndsTheRun) {
    const struct {
        int code;
        std::string text;
        ExitStatus status;
        std::string naming;
    } rows[] = {
        {403, "ACCESS_REFUSED - access to exchange 'eai.claim' in vhost '/' refused for user 'u'", ExitStatus::denied,
         "exchange 'eai.claim'"},
        {404, "NOT_FOUND - no exchange 'eai.claim' in vhost '/'", ExitStatus::unavailable, "no exchange 'eai.claim'"},
        {406, "PRECONDITION_FAILED - something else", ExitStatus::unknown, "closed the channel"},
        {406, "PRECONDITION_FAILED - message size unknown", ExitStatus::unknown, "closed the channel"},
        {541, "INTERNAL_ERROR", ExitStatus::unknown, "closed the channel"},
    };
    for (const auto& row : rows) {
        FakeBroker broker(clock_);
        FakeReport report(clock_);
        ClaimSource source({folder_.file("claims.ndjson", lines(numbered(3)))}, Framing::by_name);
        PublishWaiter waiter(clock_, broker);
        broker.on_publish = [&](Session& session, std::uint64_t tag) {
            if (tag == 1) FakeBroker::say(session, publish_event::ChannelClosed{row.code, row.text});
        };
        EXPECT_EQ(PublishRun(source, broker.open(), waiter, report, {}).run(), row.status);
        ASSERT_EQ(report.troubles.size(), 1u);
        EXPECT_TRUE(names(report.troubles[0], row.naming)) << report.troubles[0];
        EXPECT_TRUE(names(report.troubles[0], row.text)) << report.troubles[0];
        EXPECT_EQ(report.words, each(numbered(3), "unknown: " + report.troubles[0]));
        EXPECT_EQ(broker.sessions().size(), 1u);
    }
}

TEST_F(PublishRunTrouble, TheTooLargeOneIsTheLargestWhereTheTextNamesAnotherSize) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (session.number == 2) return broker_.confirm(session, tag);
        if (tag == 3)
            FakeBroker::say(session, publish_event::ChannelClosed{
                                         406, "PRECONDITION_FAILED - message size 7 larger than max size 6"});
    };
    EXPECT_EQ(run(claim("g1") + "\n" + claim("g2", 500) + "\n" + claim("g3") + "\n"), ExitStatus::refused);
    EXPECT_EQ(report_.confirmed.size(), 2u);
    EXPECT_EQ(report_.confirmed.count("g2"), 0u);
}

// ---- a blocked connection

TEST_F(PublishRunTrouble, ABlockIsToldAtOnceWaitedForAndThenTheOutcomeIsUnknown) {
    options_.blocked_timeout = 3500ms;
    options_.window = 2;
    broker_.on_publish = [](Session& session, std::uint64_t tag) {
        if (tag == 2) FakeBroker::say(session, publish_event::Blocked{"low on memory"});
    };
    EXPECT_EQ(run(numbered(4)), ExitStatus::unknown);
    ASSERT_EQ(report_.notices.size(), 1u);
    EXPECT_EQ(report_.notices[0].first, FakeClock::start);
    EXPECT_EQ(report_.notices[0].second, "blocked by the broker: low on memory; waiting for up to 3.5 s");
    EXPECT_EQ(passed(), 3500ms);
    const std::string why = ": still blocked by the broker after 3.5 s: low on memory";
    EXPECT_EQ(report_.troubles, Words{why.substr(2) + and_the_rest});
    EXPECT_EQ(report_.words, (Words{"g1 unknown" + why, "g2 unknown" + why, "g3 not-sent" + why}));
}

TEST_F(PublishRunTrouble, ABlockIsWaitedForLongerThanAConfirm) {
    options_.blocked_timeout = 60s;
    options_.confirm_timeout = 1s;
    broker_.on_publish = [](Session& session, std::uint64_t) {
        FakeBroker::say(session, publish_event::Blocked{"low on disk"});
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::unknown);
    EXPECT_EQ(passed(), 60s);
    EXPECT_EQ(report_.troubles, Words{"still blocked by the broker after 60 s: low on disk"});
}

TEST_F(PublishRunTrouble, WhileBlockedNothingIsSent) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (tag > 1) return broker_.confirm(session, tag);
        FakeBroker::say(session, publish_event::Blocked{"low on memory"});
        after(9s, [&session] { EXPECT_EQ(session.sent.size(), 1u); });
        after(10s, [this, &session] {
            FakeBroker::say(session, publish_event::Unblocked{});
            broker_.confirm(session, 1);
        });
    };
    type(0ms, lines({"g1"}));
    type(1s, lines({"g2", "g3"}));
    end_input(2s);
    EXPECT_EQ(run_on_pipe(), ExitStatus::ok);
    EXPECT_EQ(report_.words, each(numbered(3), "confirmed"));
    ASSERT_EQ(report_.notices.size(), 2u);
    EXPECT_EQ(report_.notices[1].second, "the broker takes claims again");
    EXPECT_EQ(passed(), 10s);
}

TEST_F(PublishRunTrouble, ABlockBeforeTheFirstPublishIsWaitedOutWithoutSpinning) {
    broker_.on_open = [this](Session& session) {
        FakeBroker::say(session, publish_event::Blocked{"low on memory"});
        session.ready = false;
        after(10s, [&session] {
            session.ready = true;
            FakeBroker::say(session, publish_event::Unblocked{});
        });
    };
    broker_.confirm_after(1ms);
    EXPECT_EQ(run(numbered(2)), ExitStatus::ok);
    EXPECT_EQ(passed(), 10'001ms);
}

TEST_F(PublishRunTrouble, ABlockWithNothingUnconfirmedIsBoundedToo) {
    broker_.confirm_after(1ms);
    type(0ms, lines({"g1"}));
    clock_.at(FakeClock::start + 1s,
              [this] { FakeBroker::say(broker_.session(1), publish_event::Blocked{"low on memory"}); });
    type(2s, lines({"g2"}));
    end_input(3s);
    EXPECT_EQ(run_on_pipe(), ExitStatus::unknown);
    EXPECT_EQ(passed(), 31s);
    ASSERT_EQ(report_.words.size(), 2u);
    EXPECT_TRUE(report_.words[1].starts_with("g2 not-sent"));
}

TEST_F(PublishRunTrouble, UnblockedTheConfirmIsWaitedForAnew) {
    options_.confirm_timeout = 5s;
    broker_.on_publish = [this](Session& session, std::uint64_t) {
        FakeBroker::say(session, publish_event::Blocked{"low on memory"});
        after(20s, [&session] { FakeBroker::say(session, publish_event::Unblocked{}); });
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::unknown);
    EXPECT_EQ(passed(), 25s);
}

TEST_F(PublishRunTrouble, ANewConnectionIsNotBlocked) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (session.number == 2) return broker_.confirm(session, tag);
        FakeBroker::say(session, publish_event::Blocked{"low on memory"});
        after(1s, [&session] { FakeBroker::say(session, publish_event::Lost{"reset by peer"}); });
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::ok);
    EXPECT_EQ(passed(), 1s);
}

// ---- a confirm that does not come

TEST_F(PublishRunTrouble, WithoutAConfirmInTimeTheOutcomeIsUnknown) {
    options_.confirm_timeout = 2500ms;
    options_.window = 3;
    EXPECT_EQ(run(numbered(5)), ExitStatus::unknown);
    EXPECT_EQ(passed(), 2500ms);
    EXPECT_EQ(report_.troubles, Words{"no confirm within 2.5 s" + and_the_rest});
    EXPECT_EQ(report_.words, (Words{"g1 unknown: no confirm within 2.5 s", "g2 unknown: no confirm within 2.5 s",
                                    "g3 unknown: no confirm within 2.5 s", "g4 not-sent: no confirm within 2.5 s"}));
    EXPECT_FALSE(broker_.session(1).said_goodbye) << "a silent broker is not waited for again";
}

TEST_F(PublishRunTrouble, TheTimeoutIsThatOfTheOldestOpenClaim) {
    options_.confirm_timeout = 5s;
    type(0ms, lines({"g1"}));
    type(2s, lines({"g2"}));
    clock_.at(FakeClock::start + 3s, [this] { broker_.confirm(broker_.session(1), 1); });
    end_input(4s);
    EXPECT_EQ(run_on_pipe(), ExitStatus::unknown);
    EXPECT_EQ(passed(), 7s);
    EXPECT_EQ(report_.words, (Words{"g1 confirmed", "g2 unknown: no confirm within 5 s"}));
}

TEST_F(PublishRunTrouble, ABodyThatIsStillBeingWrittenIsNotTooLate) {
    options_.confirm_timeout = 5s;
    broker_.on_publish = [this](Session& session, std::uint64_t) {
        session.ready = false;
        for (int second = 1; second <= 20; ++second)
            after(Milliseconds{second * 1000}, [&session] { FakeBroker::say(session, publish_event::Progress{}); });
        after(24s, [this, &session] { broker_.confirm(session, 1); });
    };
    EXPECT_EQ(run(numbered(1)), ExitStatus::ok);
    EXPECT_EQ(passed(), 24s);
}

TEST_F(PublishRunTrouble, TheGravestOfSeveralFailuresIsTheStatus) {
    broker_.on_publish = [this](Session& session, std::uint64_t tag) {
        if (tag == 1) broker_.confirm(session, 1, Multiple::no, Confirm::nack);
        if (tag == 2) FakeBroker::say(session, publish_event::ChannelClosed{404, "NOT_FOUND"});
    };
    EXPECT_EQ(run("nonsense\n" + lines(numbered(2))), ExitStatus::unavailable);
    EXPECT_EQ(report_.times.size(), 2u);
}

// ---- at random: every claim is told of exactly once, and none counts as published that the broker has not confirmed

class RandomBroker {
public:
    RandomBroker(FakeBroker& broker, FakeClock& clock, unsigned seed) : broker_(broker), clock_(clock), random_(seed) {
        broker_.before_open = [this](int connection) {
            if (connection > 1 && below(30) == 0) throw Failure(ExitStatus::unavailable, "refused");
        };
        broker_.on_publish = [this](Session& session, std::uint64_t tag) {
            clock_.at(clock_.now() + Milliseconds{below(50)}, [this, &session, tag] { answer(session, tag); });
        };
    }
    [[nodiscard]] int refused() const { return refused_; }

private:
    unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }

    void answer(Session& session, std::uint64_t tag) {
        if (!session.in_use || session.sent[tag - 1].confirmed) return;
        switch (below(60)) {
            case 0: return FakeBroker::say(session, publish_event::Lost{"lost"});
            case 1: return block(session, tag);
            case 2: ++refused_; return broker_.confirm(session, tag, Multiple::no, Confirm::nack);
            case 3: return broker_.confirm(session, tag, Multiple::yes);
            case 4:
                ++refused_;
                FakeBroker::say(session, publish_event::Returned{session.sent[tag - 1].guid, "312 NO_ROUTE"});
                return broker_.confirm(session, tag);
            default: return broker_.confirm(session, tag);
        }
    }
    void block(Session& session, std::uint64_t tag) {
        FakeBroker::say(session, publish_event::Blocked{"alarm"});
        clock_.at(clock_.now() + Milliseconds{below(35'000)}, [this, &session, tag] {
            if (!session.in_use) return;
            FakeBroker::say(session, publish_event::Unblocked{});
            if (!session.sent[tag - 1].confirmed) broker_.confirm(session, tag);
        });
    }

    FakeBroker& broker_;
    FakeClock& clock_;
    std::mt19937 random_;
    int refused_ = 0;
};

TEST_F(PublishRunTrouble, AtRandomEveryClaimIsToldOfExactlyOnce) {
    const auto guids = numbered(100);
    const auto path = folder_.file("claims.ndjson", lines(guids));
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        FakeClock clock;
        FakeBroker broker(clock);
        FakeReport report(clock);
        RandomBroker behaviour(broker, clock, seed);
        ClaimSource source({path}, Framing::by_name);
        PublishWaiter waiter(clock, broker);
        const auto status = PublishRun(source, broker.open(), waiter, report, {.window = 1 + seed % 20}).run();

        const auto told = static_cast<std::ptrdiff_t>(report.times.size());
        for (const auto& guid : first_of(guids, told)) ASSERT_EQ(report.times[guid], 1) << guid;
        for (const auto& [guid, times] : report.confirmed) ASSERT_GE(broker.acks[guid], 1) << guid;
        if (status == ExitStatus::unknown || status == ExitStatus::unavailable) {
            ASSERT_FALSE(report.troubles.empty());
        } else {
            ASSERT_EQ(told, 100) << "all of the input is read";
            ASSERT_EQ(status, report.confirmed.size() == 100 ? ExitStatus::ok : ExitStatus::refused);
        }
    }
}

}  // namespace
}  // namespace claimq::publish
