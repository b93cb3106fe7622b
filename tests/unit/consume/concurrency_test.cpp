// How many calls are in flight at once.
#include "consume_fixture.hpp"

namespace claimq::consume_test {
namespace {

class Concurrency : public ConsumeTest {
protected:
    // The calls that were in flight together, whenever one began.
    void note_calls_in_flight() {
        world_.witness.tell([this](const fake::Happened& one) {
            if (one.effect == Effect::call_begun) in_flight_.push_back(++now_in_flight_);
            if (one.effect == Effect::call_ended) --now_in_flight_;
        });
    }
    [[nodiscard]] int most_after(std::size_t calls) const {
        return *std::max_element(in_flight_.begin() + static_cast<std::ptrdiff_t>(calls), in_flight_.end());
    }
    std::vector<int> in_flight_;
    int now_in_flight_ = 0;
};

TEST_F(Concurrency, StartsWithOneAndGrowsByOneWithEachQuickAnswer) {
    options_.prefetch = options_.concurrency = 4;
    note_calls_in_flight();
    publish_many(20);
    EXPECT_EQ(run(), ExitStatus::ok);
    // One; then two; both are answered in the same turn, so four: of which three had come.
    EXPECT_EQ(std::vector(in_flight_.begin(), in_flight_.begin() + 6), (std::vector{1, 1, 2, 1, 2, 3}));
    EXPECT_EQ(most_in_flight_, 4);
}

TEST_F(Concurrency, NeverExceedsTheOption) {
    options_.prefetch = 10;
    options_.concurrency = 2;
    publish_many(30);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(most_in_flight_, 2);
    EXPECT_EQ(world_.broker.most_unacked(), 10U);
}

TEST_F(Concurrency, PrefetchOfOneIsStrictlySerial) {
    options_.prefetch = options_.concurrency = 1;
    publish_many(10);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(world_.broker.most_unacked(), 1U);
    const auto lines = journal_of({"call begun", "settled"});
    for (int n = 1; n <= 10; ++n) {
        const auto id = "c" + std::to_string(n);
        EXPECT_EQ(lines.at(2 * static_cast<std::size_t>(n) - 2), "call begun " + id + " 201");
        EXPECT_EQ(lines.at(2 * static_cast<std::size_t>(n) - 1), "settled " + id + " ack");
    }
}

TEST_F(Concurrency, IsHalvedByASlowAnswer) {
    options_.prefetch = options_.concurrency = 8;
    note_calls_in_flight();
    world_.claims.plan = [](const Request& request) { return answers(201, request.id == "c20" ? 6000ms : 10ms); };
    publish_many(20);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(most_in_flight_, 8);
    in_flight_.clear();

    for (int n = 21; n <= 28; ++n) publish("c" + std::to_string(n));
    world_.claims.plan = [](const Request&) { return answers(201, 6s); };
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(most_after(0), 1) << "a new run starts with one, and slow answers keep it there";
}

TEST_F(Concurrency, ATimeoutCapsItForTheRestOfTheRun) {
    options_.prefetch = options_.concurrency = 5;
    note_calls_in_flight();
    std::size_t began_before = 0;
    world_.claims.plan = [&](const Request& request) {
        return request.id == "c15" && request.attempt == 1 ? fake::hangs() : answers(201);
    };
    publish_many(15);
    at(9s, [&] {
        EXPECT_EQ(now_in_flight_, 1);  // the one that hangs; others come and join it
        for (int n = 16; n <= 60; ++n) publish("c" + std::to_string(n));
    });
    at(20s, [&] {
        began_before = in_flight_.size();
        for (int n = 61; n <= 90; ++n) publish("c" + std::to_string(n));
    });
    run_for(30s);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(acked(), 90U);
    EXPECT_EQ(most_after(began_before), 1) << "it was alone when it timed out: at least one, and no more";
}

TEST_F(Concurrency, IsCappedAtOneLessThanWasInFlightAtTheTimeout) {
    options_.prefetch = options_.concurrency = 4;
    note_calls_in_flight();
    std::size_t began_before = 0;
    world_.claims.plan = [&](const Request& request) {
        const bool first = request.attempt == 1;
        if (first && request.id.size() == 4) return answers(201, request.id == "hang" ? 20s : 11s);  // hang, slow
        return answers(201);
    };
    publish_many(10);
    at(1s, [&] { publish("hang"), publish("slow"), publish("slo2"); });  // three time out together
    at(20s, [&] {
        began_before = in_flight_.size();
        for (int n = 11; n <= 40; ++n) publish("d" + std::to_string(n));
    });
    run_for(30s);
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(most_after(began_before), 2);
    EXPECT_EQ(acked(), 43U);
}

TEST_F(Concurrency, ASerialClaimsSystemIsNotPushedIntoTimeouts) {
    TimePoint free_at{};  // serves one call at a time, 3 s each
    world_.claims.plan = [&](const Request&) {
        free_at = std::max(free_at, world_.clock.now()) + 3s;
        const auto after = std::chrono::duration_cast<Milliseconds>(free_at - world_.clock.now());
        return CallPlan{Answered{201, {}, {}}, after, after};
    };
    publish_many(10);
    EXPECT_EQ(run(), ExitStatus::ok);
    int twice = 0;
    for (int n = 1; n <= 10; ++n) {
        EXPECT_LE(calls("c" + std::to_string(n)), 2);
        twice += calls("c" + std::to_string(n)) == 2 ? 1 : 0;
    }
    EXPECT_LE(twice, 1);
    EXPECT_EQ(dead(), 0U);
    EXPECT_EQ(acked(), 10U);
}

TEST_F(Concurrency, WaitingIsNotSpinning) {
    world_.claims.plan = [](const Request&) { return answers(503, 9s); };
    publish("a");
    EXPECT_EQ(run(), ExitStatus::ok);
    EXPECT_EQ(dead(), 1U);
    EXPECT_LT(turns_, 40);
}

}  // namespace
}  // namespace claimq::consume_test
