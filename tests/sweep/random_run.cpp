#include "random_run.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "simulation.hpp"

namespace claimq::sweep {

namespace {

using namespace std::chrono_literals;
using fake::CallPlan;

class RandomRun {
public:
    RandomRun(std::uint64_t seed, Mutation mutation)
        : dice_(seed), simulation_(dice_.next(), mutation), answers_(dice_.next()), wire_(dice_.next()) {}

    [[nodiscard]] Findings run() {
        choose_world();
        choose_claims();
        choose_trouble();
        for (int consumer = 0; consumer < consumers_; ++consumer) start(consumer);
        simulation_.world.clock.at(begin_ + trouble_, [this] { end_trouble(); });
        if (simulation_.run()) drain();
        Findings findings{simulation_.violations(), 0, simulation_.processes()};
        for (int process = 0; process <= findings.processes; ++process)
            findings.effects += simulation_.effects_of(process);
        return findings;
    }

private:
    // ---- the world

    void choose_world() {
        consumers_ = dice_.percent(40) ? 2 : 1;
        trouble_ = dice_.between(1s, 30s);
        for (auto& options : options_) options = choose_options();
        constexpr int preemptions[] = {0, 0, 2, 15};
        simulation_.preempt_percent = preemptions[dice_.between(0, 3)];
        if (dice_.percent(20)) simulation_.most_written_at_once = static_cast<std::size_t>(dice_.between(1, 3));
        simulation_.loss_at_death = choose_loss();
        auto& broker = simulation_.world.broker;
        if (dice_.percent(30)) broker.requeue_takes = 100ms;
        const auto usual = dice_.between(0ms, 5ms);
        const int spikes = dice_.percent(30) ? dice_.between(1, 10) : 0;
        // A depth that is asked for right behind a requeue that took long does not count it where counting is late,
        // too; then a drained run may leave a claim queued.
        const auto latency = [this, usual, spikes] {
            const bool quiet = is_well_ && simulation_.world.broker.requeue_takes > 0ms;
            return !quiet && wire_.percent(spikes) ? wire_.between(0ms, 3s) : usual;
        };
        broker.latency = {latency, latency};
        simulation_.world.claims.plan = [this](const fake::Request& request) { return answer(request); };
    }

    [[nodiscard]] consume::Options choose_options() {
        consume::Options options;
        options.prefetch = dice_.between(1, 8);
        options.concurrency = dice_.between(1, options.prefetch);
        constexpr Milliseconds timeouts[] = {1s, 2s, 10s};
        options.timeout = timeouts[dice_.between(0, 2)];
        if (dice_.percent(40)) options.retry_delay = dice_.between(100ms, 5s);
        if (dice_.percent(10)) options.policy.stop_on = {401};
        return options;
    }

    [[nodiscard]] fake::Loss choose_loss() {
        fake::Loss loss;
        if (dice_.percent(50)) loss.unread = fake::Loss::Unread::still_read;
        if (dice_.percent(50)) loss.written_that_arrive = static_cast<std::size_t>(dice_.between(0, 4));
        if (dice_.percent(30)) loss.noticed_after = dice_.between(1ms, 10s);
        return loss;
    }

    // ---- the claims

    void choose_claims() {
        constexpr int chances[] = {0, 20, 20, 100};
        const int twice = chances[dice_.between(0, 3)];
        const int claims = dice_.between(1, 12);
        for (int n = 1; n <= claims; ++n) {
            const std::string id = "c" + std::to_string(n);
            const std::string body = R"({"guid":")" + id + R"("})";
            publish(dice_.percent(10) ? "" : id, id, body);
            if (dice_.percent(twice)) publish(id, id, body);
            if (dice_.percent(10)) publish(id, id, body + " ");
        }
        if (dice_.percent(20)) publish("", "", "no claim");
    }

    void publish(const std::string& message_id, const std::string& id, const std::string& body) {
        const auto redelivered = dice_.percent(10) ? Redelivered::yes : Redelivered::no;
        const auto when = dice_.percent(50) ? 0ms : dice_.between(0ms, trouble_);
        simulation_.world.clock.at(begin_ + when,
                                   [=, this] { simulation_.publish(message_id, id, body, redelivered); });
    }

    [[nodiscard]] CallPlan answer(const fake::Request&) {
        const auto quick = answers_.between(0ms, 200ms);
        const auto slow = answers_.between(200ms, 12s);
        const auto after = answers_.percent(is_well_ ? 0 : 25) ? slow : quick;
        const int what = answers_.between(1, is_well_ ? 90 : 100);
        if (what <= 50) return fake::answers(201, after);
        if (what <= 55) return {Answered{201, {}, "cut"}, after, after / 2};
        if (what <= 65) return fake::answers(422, after);
        if (what <= 72) return fake::answers(503, after, std::chrono::seconds{answers_.between(0, 40)});
        if (what <= 76) return fake::fails(CallFailure::refused, quick);
        if (what <= 80) return fake::fails(CallFailure::garbage, after);
        if (what <= 84) return {NotAnswered{CallFailure::cut, "cut"}, after, after / 2};
        if (what <= 90) return {Answered{201, {}, {}}, after + 1s, after / 2};  // later than some timeouts
        if (what <= 97) return fake::answers(401, after);
        if (what <= 98) return fake::own_fault();
        return fake::hangs();
    }

    // ---- the trouble

    void choose_trouble() {
        const int troubles = dice_.between(0, 8);
        for (int n = 0; n < troubles; ++n) at(dice_.between(0ms, trouble_), choose_one());
        if (dice_.percent(40)) simulation_.die_at_effect(dice_.between(1, 3), dice_.between(1, 60));
    }

    void at(Milliseconds when, std::function<void()> what) {
        simulation_.world.clock.at(begin_ + when, [this, what = std::move(what)] {
            if (!is_well_) what();
        });
    }

    [[nodiscard]] std::function<void()> choose_one() {
        auto& world = simulation_.world;
        const int consumer = dice_.between(0, consumers_ - 1);
        const auto time = dice_.between(1ms, dice_.percent(30) ? 20s : 1s);
        const auto loss = choose_loss();
        switch (dice_.between(1, 11)) {
            case 1:
            case 2: return [&world, loss] { world.broker.lose_connections(loss); };
            case 3: return [&world] { world.broker.close_channels("queue 'claim.in' was deleted"); };
            case 4: return [this, loss, time] { broker_goes_away(loss, time); };
            case 5: return [&world, time] { world.store.busy_until = world.clock.now() + time; };
            case 6: return [&world, time] { world.store.commit_takes = std::min(time, Milliseconds{4'000}); };
            case 7: return [this] { store_breaks(); };
            case 8:
            case 9: return [this, consumer] { simulation_.signal(consumer); };
            case 10: return [this, consumer] { simulation_.kill(consumer); };
            default: return [this, loss, time] { broker_freezes(loss, time); };
        }
    }

    void broker_goes_away(const fake::Loss& loss, Milliseconds time) {
        auto& world = simulation_.world;
        world.broker.accepts_connections = false;
        world.broker.lose_connections(loss);
        world.clock.at(world.clock.now() + time, [&world] { world.broker.accepts_connections = true; });
    }

    // Until the heartbeat finds out.
    void broker_freezes(const fake::Loss& loss, Milliseconds time) {
        auto& world = simulation_.world;
        world.broker.frozen = true;
        world.clock.at(world.clock.now() + time, [&world, loss] {
            world.broker.frozen = false;
            world.broker.lose_connections(loss);
        });
    }

    void store_breaks() {
        auto& world = simulation_.world;
        world.store.broken = true;
        world.clock.at(world.clock.now() + 500ms, [&world] { world.store.broken = false; });
    }

    void end_trouble() {
        is_well_ = true;
        simulation_.let_all_live();
        simulation_.world.broker.accepts_connections = true;
        for (int consumer = 0; consumer < consumers_; ++consumer) simulation_.signal(consumer);
    }

    // ---- the consumers

    void start(int consumer) {
        auto options = options_.at(static_cast<std::size_t>(consumer));
        if (dice_.percent(30)) options.max_time = dice_.between(1ms, 10s);
        if (dice_.percent(30)) options.until_empty = true;
        simulation_.start(consumer, options, [this](int gone) {
            if (is_well_) return;
            const auto pause = dice_.between(0ms, 500ms);
            simulation_.world.clock.at(simulation_.world.clock.now() + pause, [this, gone] {
                if (!is_well_) start(gone);
            });
        });
    }

    // Nothing is in anybody's hands. One run has to do all that is left.
    void drain() {
        auto& world = simulation_.world;
        world.store.busy_until = {};
        world.clock.advance(world.broker.requeue_takes);
        auto options = options_[0];
        options.until_empty = true;
        options.policy.stop_on.clear();
        simulation_.start(0, options);
        if (!simulation_.run()) return;
        simulation_.checker.drained();
        if (simulation_.last_status != ExitStatus::ok) simulation_.checker.violation("a run without trouble failed");
    }

    Dice dice_;
    Simulation simulation_;
    Dice answers_;
    Dice wire_;
    const TimePoint begin_ = fake::FakeClock::start;
    int consumers_ = 1;
    Milliseconds trouble_{0};
    bool is_well_ = false;
    std::array<consume::Options, 2> options_;
};

}  // namespace

Findings random_run(std::uint64_t seed, Mutation mutation) { return RandomRun(seed, mutation).run(); }

}  // namespace claimq::sweep
