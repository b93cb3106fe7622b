// A world with consumers in it, one thread, one seed. Each consumer is the real loop on the fakes, in a fiber: it is
// left where it waits, and now and then in the middle of a turn.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checker.hpp"
#include "decorators.hpp"
#include "dice.hpp"
#include "fake_world.hpp"
#include "fiber.hpp"

namespace claimq::sweep {

class Simulation {
public:
    Simulation(std::uint64_t seed, Mutation mutation);
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;
    ~Simulation();

    fake::World world;
    Checker checker{world};
    Dice dice;                // for what the simulation itself decides
    int preempt_percent = 0;  // at each step of a process
    fake::Loss loss_at_death;
    std::size_t most_written_at_once = fake::Loss::all;
    ExitStatus last_status = ExitStatus::ok;  // of the process that ended last by itself

    void publish(const std::string& message_id, const std::string& id, const std::string& body,
                 Redelivered redelivered);
    // The next process of this consumer (0, 1, …) begins now; when it is gone, `then` is called with its place.
    int start(
        int consumer, const consume::Options& options, std::function<void(int)> then = [](int) {});
    void signal(int consumer);
    void kill(int consumer);
    // Process `process` dies right after its n-th effect.
    void die_at_effect(int process, int n);
    void let_all_live() { dies_at_.clear(); }

    // Until all processes are gone. False when that does not come to pass.
    bool run();

    [[nodiscard]] const std::vector<std::string>& violations() const { return checker.violations(); }
    [[nodiscard]] int effects_of(int process) const;
    [[nodiscard]] int processes() const noexcept { return last_process_; }

private:
    struct Consumer;

    void live(Consumer&);
    void sleep(Consumer&, Milliseconds);
    [[nodiscard]] TimePoint due(const Consumer&) const;
    [[nodiscard]] TimePoint next() const;
    void resume(Consumer&);
    void bury(Consumer&);
    void count(const fake::Happened&);
    [[nodiscard]] Consumer* of(int consumer);

    Mutation mutation_;
    std::vector<std::unique_ptr<Consumer>> consumers_;  // that live
    int last_process_ = 0;
    std::map<int, int> effects_;  // process to their number
    std::map<int, int> dies_at_;
};

}  // namespace claimq::sweep
