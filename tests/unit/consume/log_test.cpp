// What the run says: a line per settled delivery, never a body, and the totals.
#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

class Says : public ConsumeTest {
protected:
    [[nodiscard]] static std::size_t lines_with(const Texts& log, std::string_view text) {
        return static_cast<std::size_t>(
            std::ranges::count_if(log, [&](const auto& line) { return line.find(text) != std::string::npos; }));
    }
};

TEST_F(Says, OneLineForEachSettledDelivery) {
    world_.store.processed["d"] = "{}";
    world_.claims.plan = [](const Request& request) {
        return answers(request.id == "b" ? 422 : request.id == "c" ? 503 : 201, 25ms);
    };
    for (const char* id : {"a", "b", "c", "d"}) publish(id);
    publish("", "no claim");
    EXPECT_EQ(run_and_read_log(),
              (Texts{"consumer: unidentified status=0 settlement=dead-letter redelivered=no ms=0 "
                     "reason=\"neither message_id nor guid\"",
                     "consumer: duplicate id=d status=0 settlement=ack redelivered=no ms=0",
                     "consumer: accepted id=a status=201 settlement=ack redelivered=no ms=25",
                     "consumer: failed id=c status=503 settlement=requeue redelivered=no ms=25",
                     "consumer: rejected id=b status=422 settlement=dead-letter redelivered=no ms=25",
                     "consumer: failed id=c status=503 settlement=dead-letter redelivered=yes ms=25"}));
}

TEST_F(Says, ATimeoutHasNoStatus) {
    always(fake::hangs());
    publish("a", "{}", Redelivered::yes);
    EXPECT_EQ(run_and_read_log(),
              Texts{"consumer: failed id=a status=0 settlement=dead-letter redelivered=yes ms=10000 "
                    "reason=\"timed out: no answer\""});
}

TEST_F(Says, NeverABody) {
    options_.prefetch = options_.concurrency = 8;
    run_for(1s);
    world_.claims.plan = [](const Request& request) {
        if (request.id == "c1") return CallPlan{Answered{422, {}, "SECRET reason"}, 10ms, {}};
        if (request.id == "c2") return fails(CallFailure::garbage);
        if (request.id == "c3") return CallPlan{Answered{201, {}, "SECRET"}, 10ms, 5ms};
        return answers(201, 3s);
    };
    for (int n = 1; n <= 8; ++n) publish("c" + std::to_string(n), "SECRET body");
    publish("", "SECRET without an id");
    publish("c3", "another SECRET");
    at(800ms, [this] { lose_connection(); });
    const auto log = run_and_read_log(LogLevel::debug);
    EXPECT_GT(log.size(), 6U);
    EXPECT_EQ(lines_with(log, "SECRET"), 0U);
}

TEST_F(Says, ADeliveryWhoseConnectionIsGoneIsSaidToBeUnsettled) {
    always(answers(201, 1s));
    publish("a");
    at(500ms, [this] { lose_connection(); });
    EXPECT_EQ(run_and_read_log(), (Texts{"consumer: warning: connection to the broker lost: connection reset",
                                         "consumer: accepted id=a status=201 settlement=none redelivered=no ms=1000",
                                         "consumer: duplicate id=a status=0 settlement=ack redelivered=yes ms=0"}));
}

TEST_F(Says, WhatIsHandedBackOnlyWhenAsked) {
    run_for(1s);
    always(answers(201, 2s));
    publish_many(3);
    EXPECT_EQ(lines_with(run_and_read_log(), "handed back"), 0U);
    EXPECT_EQ(lines_with(run_and_read_log(LogLevel::debug), "handed back"), 1U);
}

TEST_F(Says, WhyItEnds) {
    run_for(1s);
    world_.broker.accepts_connections = false;
    EXPECT_EQ(lines_with(run_and_read_log(), "no connection to the broker at the end"), 1U);
}

TEST_F(Says, WhichStatusStoppedTheRun) {
    options_.policy.stop_on = {401};
    always(answers(401));
    publish("a");
    EXPECT_EQ(run_and_read_log(), (Texts{"consumer: the claims system answered 401, which --stop-on names",
                                         "consumer: stopped id=a status=401 settlement=requeue redelivered=no ms=10"}));
}

TEST_F(Says, WhatFailedOnThisSide) {
    always(fake::own_fault());
    publish("a");
    EXPECT_EQ(run_and_read_log(), Texts{"consumer: call for 'a': no descriptors"});
}

TEST_F(Says, ThatTheStoreIsDownForLongAndUp) {
    publish("a");
    world_.store.busy_until = world_.clock.now() + 20s;
    const auto log = run_and_read_log();
    ASSERT_EQ(log.size(), 3U);
    EXPECT_EQ(log[0], "consumer: warning: store is busy; no call is started until it works again");
    EXPECT_EQ(log[1], "consumer: warning: the store works again");
}

TEST_F(Says, NothingOfAStoreThatIsBusyForMoments) {
    publish("a");
    world_.store.busy_until = world_.clock.now() + 2s;
    EXPECT_EQ(lines_with(run_and_read_log(), "warning"), 0U);
}

// ---- the totals

TEST_F(Says, TheTotalsOfAllSettledDeliveries) {
    world_.store.processed = {{"d", "{}"}, {"e", "{}"}};
    world_.claims.plan = [](const Request& request) {
        return answers(request.id == "b" ? 422 : request.id == "c" ? 503 : 201);
    };
    for (const char* id : {"a", "b", "c", "d"}) publish(id);
    publish("e", "another");
    publish("", "no claim");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(totals_.accepted, 1U);
    EXPECT_EQ(totals_.duplicate, 2U);
    EXPECT_EQ(totals_.rejected, 1U);
    EXPECT_EQ(totals_.requeued, 1U);
    EXPECT_EQ(totals_.dead_lettered, 2U);
    EXPECT_EQ(totals_.conflicts, 1U);
    EXPECT_EQ(totals_.took, took_);
}

TEST(Totals, AreOneJsonObject) {
    const consume::Totals totals{1, 2, 3, 4, 5, 6, 7'080ms};
    EXPECT_EQ(
        totals.json(),
        R"({"accepted":1,"duplicate":2,"rejected":3,"requeued":4,"dead_lettered":5,"conflicts":6,"seconds":7.080})");
}

}  // namespace
}  // namespace claimq::consume_test
