// The process dies at its first effect, at its second, and so on; what survives is taken up by the next one.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulation.hpp"

namespace claimq::sweep {
namespace {

using namespace std::chrono_literals;
using fake::answers;
using fake::CallPlan;
using fake::Request;

struct Scenario {
    const char* name;
    consume::Options options;
    int consumers = 1;
    int losses = 0;  // of the connection
    std::function<void(Simulation&)> besides = [](Simulation&) {};
};
void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

std::string body_of(const std::string& id) { return R"({"guid":")" + id + R"("})"; }

// One of each kind.
void publish_all(Simulation& simulation) {
    const auto no = Redelivered::no;
    for (const char* id : {"ok", "rejected", "flaky", "failing", "late", "cut"})
        simulation.publish(id, id, body_of(id), no);
    simulation.publish("ok", "ok", body_of("ok"), no);
    simulation.publish("ok", "ok", "another body", no);
    simulation.publish("", "nameless", body_of("nameless"), no);
    simulation.publish("", "", "no claim", no);
    simulation.publish("flaky", "flaky", body_of("flaky"), no);
    simulation.publish("again", "again", body_of("again"), Redelivered::yes);
}

CallPlan plan(const Request& request) {
    if (request.id == "rejected") return answers(422);
    if (request.id == "flaky") return answers(request.attempt == 1 ? 503 : 201);
    if (request.id == "failing") return answers(503);
    if (request.id == "late") return {Answered{201, {}, {}}, 2s, 100ms};
    if (request.id == "cut") return {Answered{201, {}, "cut"}, 30ms, 20ms};
    return answers(201);
}

consume::Options options(int prefetch, Milliseconds retry_delay = 0ms) {
    consume::Options options;
    options.prefetch = options.concurrency = prefetch;
    options.timeout = 1s;
    options.retry_delay = retry_delay;
    options.until_empty = true;
    return options;
}

consume::Options ended_after(Milliseconds time, consume::Options options) {
    options.max_time = time;
    return options;
}

void lose_connections(Simulation& simulation) {
    for (const auto when : {15ms, 40ms, 170ms, 1200ms})
        simulation.world.clock.at(fake::FakeClock::start + when,
                                  [&simulation] { simulation.world.broker.lose_connections(); });
}

void make_store_busy(Simulation& simulation) {
    simulation.world.clock.at(fake::FakeClock::start + 10ms,
                              [&world = simulation.world] { world.store.busy_until = world.clock.now() + 800ms; });
}

class CrashSweep : public testing::TestWithParam<Scenario> {
protected:
    // The processes begin one after the other, each where the one before it left.
    static void start(Simulation& simulation, int consumer, const consume::Options& options) {
        simulation.start(consumer, options, [&simulation, options](int gone) {
            if (simulation.world.broker.ready().empty() || simulation.processes() > 20) return;
            start(simulation, gone, options);
        });
    }

    struct Death {
        int process;
        int effect;
    };
    // False when a process ended before its death.
    bool survives(const std::vector<Death>& deaths, const fake::Loss& loss) {
        Simulation simulation(1, Mutation::none);
        simulation.loss_at_death = loss;
        simulation.world.claims.plan = plan;
        publish_all(simulation);
        GetParam().besides(simulation);
        for (const auto& death : deaths) simulation.die_at_effect(death.process, death.effect);
        for (int consumer = 0; consumer < GetParam().consumers; ++consumer)
            start(simulation, consumer, GetParam().options);
        run_until_drained(simulation);
        for (const auto& text : simulation.violations()) ADD_FAILURE() << text << where(deaths);
        for (const char* id : {"ok", "rejected", "flaky", "failing", "late", "cut", "nameless", "again"})
            calls_[id].push_back(simulation.world.claims.calls(id));
        bool all_died = true;
        for (const auto& death : deaths) all_died = all_died && simulation.effects_of(death.process) >= death.effect;
        return all_died;
    }

    // What a broker that noticed late takes back is queued when everybody has gone home.
    static void run_until_drained(Simulation& simulation) {
        while (simulation.run() && !simulation.world.broker.ready().empty() && simulation.processes() < 20)
            start(simulation, 0, GetParam().options);
        if (simulation.violations().empty()) simulation.checker.drained();
    }

    static std::string where(const std::vector<Death>& deaths) {
        std::string text;
        for (const auto& death : deaths)
            text += "\nprocess " + std::to_string(death.process) + " died at effect " + std::to_string(death.effect);
        return text;
    }

    // One call, one retry, one for each fault. Which of them had an excuse is the checker's business.
    void expect_no_more_calls_than_faults_allow(int deaths) {
        for (const auto& [id, calls] : calls_)
            EXPECT_LE(*std::ranges::max_element(calls), 2 + deaths + GetParam().losses) << id;
    }

    static constexpr int never = 1'000'000;
    std::map<std::string, std::vector<int>> calls_;  // of each claim, in the first run and so on
};

const fake::Loss loses_what_was_written{};
const fake::Loss writes_arrive{.written_that_arrive = fake::Loss::all};
const fake::Loss is_noticed_late{.unread = fake::Loss::Unread::still_read, .noticed_after = 3s};

TEST_P(CrashSweep, OneDeath) {
    ASSERT_FALSE(survives({{1, never}}, {}));
    for (const auto& loss : {loses_what_was_written, writes_arrive, is_noticed_late})
        for (int n = 1; !HasFailure() && survives({{1, n}}, loss); ++n) continue;
    expect_no_more_calls_than_faults_allow(1);
    EXPECT_GT(calls_["ok"].size(), 200U);
}

TEST_P(CrashSweep, TwoDeaths) {
    ASSERT_FALSE(survives({{1, never}}, {}));
    for (int n = 1; !HasFailure(); n += 5) {
        const auto& loss = n % 2 == 0 ? writes_arrive : loses_what_was_written;
        int m = 1;
        while (!HasFailure() && survives({{1, n}, {2, m}}, loss)) m += 3;
        if (m == 1) break;
    }
    expect_no_more_calls_than_faults_allow(2);
}

INSTANTIATE_TEST_SUITE_P(Sweep, CrashSweep,
                         testing::Values(Scenario{"Usual", options(5)}, Scenario{"Serial", options(1)},
                                         Scenario{"WithRetryDelay", options(4, 300ms)},
                                         Scenario{"EndedInTheMiddle", ended_after(60ms, options(8))},
                                         Scenario{"ConnectionLost", options(5), 1, 4, lose_connections},
                                         Scenario{"StoreBusy", options(5), 1, 0, make_store_busy},
                                         Scenario{"TwoConsumers", options(3), 2}),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace claimq::sweep
