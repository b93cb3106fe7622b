#include "simulation.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace claimq::sweep {

namespace {

constexpr auto silent = static_cast<LogLevel>(-1);
constexpr int most_resumes = 400'000;
constexpr std::chrono::seconds longest_end{5};  // beyond the time for calls in flight: SPEC §6

bool is_traced() { return std::getenv("CLAIMQ_SWEEP_TRACE") != nullptr; }

// Waits by leaving its fiber.
class FiberWaiter : public Waiter {
public:
    FiberWaiter(fake::FakeClock& clock, const fake::Process& process, std::vector<Watch>& watches, Fiber*& fiber)
        : clock_(clock), process_(process), watches_(watches), fiber_(fiber) {}
    [[nodiscard]] TimePoint now() const override { return clock_.now(); }
    void wait(std::span<const Watch> watches) override {
        count_.turn(clock_.now());
        watches_.assign(watches.begin(), watches.end());
        fiber_->yield();
        watches_.clear();
        process_.step();
    }

private:
    fake::FakeClock& clock_;
    const fake::Process& process_;
    std::vector<Watch>& watches_;
    Fiber*& fiber_;
    fake::TurnCount count_;
};

}  // namespace

struct Simulation::Consumer {
    Consumer(int place, int number, consume::Options with)
        : consumer(place), process(number), options(std::move(with)) {}

    // No loop can help the time that it sleeps meanwhile; main's alarm ends such a process.
    void has_to_end_within(Milliseconds time, TimePoint now) {
        ends_by = std::min(ends_by, std::max(now, asleep_until) + time);
    }

    int consumer;
    fake::Process process;
    consume::Options options;
    std::function<void(int)> then;
    std::optional<fake::Seams> seams;
    std::vector<Watch> watches;  // while it waits
    TimePoint asleep_until{};    // in the middle of a turn
    TimePoint ends_by = fake::never;
    std::optional<ExitStatus> status;
    bool signalled = false;
    Fiber* running = nullptr;
    std::unique_ptr<Fiber> fiber;
};

Simulation::Simulation(std::uint64_t seed, Mutation mutation) : dice(seed), mutation_(mutation) {
    world.witness.tell([this](const fake::Happened& one) { count(one); });
}

Simulation::~Simulation() {
    for (auto& consumer : consumers_) {
        consumer->process.die();
        while (!consumer->fiber->ended()) consumer->fiber->resume();
    }
    consumers_.clear();  // which is seen by what is still there
}

void Simulation::publish(const std::string& message_id, const std::string& id, const std::string& body,
                         Redelivered redelivered) {
    checker.published(world.broker.publish(message_id, body, redelivered), id, body);
}

int Simulation::start(int consumer, const consume::Options& options, std::function<void(int)> then) {
    consumers_.push_back(std::make_unique<Consumer>(consumer, ++last_process_, options));
    auto& one = *consumers_.back();
    one.then = std::move(then);
    one.options.on_ending = [this, &one](Milliseconds time) { one.has_to_end_within(time, world.clock.now()); };
    if (options.max_time) one.has_to_end_within(*options.max_time + options.timeout + longest_end, world.clock.now());
    checker.started(one.process.number(), one.options);
    one.process.at_step = [this, &one] {
        if (preempt_percent > 0 && dice.percent(preempt_percent))
            sleep(one, dice.percent(20) ? dice.between(Milliseconds{0}, Milliseconds{150}) : Milliseconds{0});
    };
    one.process.sleep = [this, &one](Milliseconds time) { sleep(one, time); };
    one.fiber = std::make_unique<Fiber>([this, &one] { live(one); });
    one.running = one.fiber.get();
    return one.process.number();
}

// In the middle of a turn; the others go on.
void Simulation::sleep(Consumer& one, Milliseconds time) {
    one.asleep_until = world.clock.now() + time;
    if (one.ends_by != fake::never) one.ends_by += time;
    one.running->yield();
    one.asleep_until = {};
}

// One process, from its start to its end.
void Simulation::live(Consumer& one) try {
    one.seams.emplace(world, one.process, one.options);
    one.seams->channel.loss_at_death = loss_at_death;
    one.seams->channel.most_written_at_once = most_written_at_once;
    if (one.signalled) one.seams->stop.signal();
    Decorated seams(*one.seams, mutation_);
    FiberWaiter waiter(world.clock, one.process, one.watches, one.running);
    Log log("consumer", silent, LogFormat::plain);
    consume::ConsumeLoop loop(seams.channel(), seams.inbox(), seams.api(), waiter, one.seams->stop, log, one.options);
    const auto status = loop.run();
    one.seams->channel.close();
    one.status = status;
} catch (const fake::Died&) {
} catch (const std::exception& error) {
    checker.violation("process " + std::to_string(one.process.number()) + ": " + error.what());
}

void Simulation::signal(int consumer) {
    auto* one = of(consumer);
    if (one == nullptr) return;
    one->signalled = true;
    one->has_to_end_within(one->options.timeout + longest_end, world.clock.now());
    if (one->seams) one->seams->stop.signal();
}

void Simulation::kill(int consumer) {
    if (auto* one = of(consumer)) one->process.die();
}

void Simulation::die_at_effect(int process, int n) { dies_at_[process] = n; }

int Simulation::effects_of(int process) const {
    const auto at = effects_.find(process);
    return at == effects_.end() ? 0 : at->second;
}

Simulation::Consumer* Simulation::of(int consumer) {
    const auto at = std::ranges::find_if(consumers_, [&](const auto& one) { return one->consumer == consumer; });
    return at == consumers_.end() ? nullptr : at->get();
}

void Simulation::count(const fake::Happened& one) {
    if (is_traced()) {
        const auto time = std::chrono::duration_cast<Milliseconds>(world.clock.now() - fake::FakeClock::start);
        std::printf("%8lld ms  %d  %s%s\n", static_cast<long long>(time.count()), one.process, text_of(one).c_str(),
                    one.message > 0 ? (" #" + std::to_string(one.message)).c_str() : "");
    }
    const auto dies_at = dies_at_.find(one.process);
    if (++effects_[one.process] != (dies_at == dies_at_.end() ? -1 : dies_at->second)) return;
    for (auto& consumer : consumers_)
        if (consumer->process.number() == one.process) consumer->process.die();
}

// ---- scheduling

TimePoint Simulation::due(const Consumer& one) const {
    if (one.process.doomed()) return {};
    return one.watches.empty() ? one.asleep_until : world.descriptors.due(one.watches);
}

TimePoint Simulation::next() const {
    auto first = world.clock.next();
    for (const auto& one : consumers_) first = std::min(first, due(*one));
    return first;
}

bool Simulation::run() {
    for (int resumes = 0; resumes < most_resumes && violations().empty(); ++resumes) {
        world.clock.advance_to(world.clock.now());
        if (consumers_.empty()) {
            if (world.clock.next() == fake::never) return true;
            world.clock.advance_to(world.clock.next());
            continue;
        }
        std::vector<Consumer*> ready;
        for (const auto& one : consumers_)
            if (due(*one) <= world.clock.now()) ready.push_back(one.get());
        if (!ready.empty()) {
            resume(*ready[static_cast<std::size_t>(dice.between(0, static_cast<int>(ready.size()) - 1))]);
        } else if (next() == fake::never) {
            checker.violation("nothing will ever happen again");
        } else {
            world.clock.advance_to(next());
        }
    }
    if (violations().empty()) checker.violation("the simulation does not end");
    return false;
}

void Simulation::resume(Consumer& one) {
    one.fiber->resume();
    if (one.fiber->ended()) bury(one);
}

void Simulation::bury(Consumer& one) {
    const auto number = one.process.number();
    if (one.status && world.clock.now() > one.ends_by) checker.violation("ended later than it has to");
    if (one.status) last_status = *one.status;
    one.status ? checker.ended(number, *one.status) : checker.died(number);
    one.seams.reset();
    const auto then = std::move(one.then);
    const auto consumer = one.consumer;
    std::erase_if(consumers_, [&](const auto& other) { return other.get() == &one; });
    then(consumer);
}

}  // namespace claimq::sweep
