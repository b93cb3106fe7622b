// Time as a number. It moves only when a consumer waits or its disk is slow; what the rest of the world does meanwhile
// (a frame arrives, a claims system answers, somebody pulls a plug) happens in the order of time.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "claimq/clock.hpp"
#include "claimq/waiter.hpp"

namespace claimq::fake {

using namespace std::chrono_literals;

inline constexpr TimePoint never = TimePoint::max();

// A part of the world that does things by itself.
class Actor {
public:
    virtual ~Actor() = default;
    [[nodiscard]] virtual TimePoint next() const = 0;  // when it has something to do
    virtual void act(TimePoint now) = 0;               // does all that is due
};

class FakeClock {
public:
    static constexpr TimePoint start = TimePoint{} + std::chrono::hours{1};

    [[nodiscard]] TimePoint now() const noexcept { return now_; }
    void add(Actor& actor) { actors_.push_back(&actor); }
    void at(TimePoint when, std::function<void()> action) { actions_.emplace(when, std::move(action)); }

    [[nodiscard]] TimePoint next() const {
        auto first = actions_.empty() ? never : actions_.begin()->first;
        for (const auto* actor : actors_) first = std::min(first, actor->next());
        return first;
    }

    void advance_to(TimePoint when) {
        for (auto due = next(); due <= when; due = next()) {
            now_ = std::max(now_, due);
            act();
        }
        now_ = std::max(now_, when);
    }
    void advance(Milliseconds time) { advance_to(now_ + time); }

private:
    void act() {
        while (!actions_.empty() && actions_.begin()->first <= now_) {
            const auto action = std::move(actions_.begin()->second);
            actions_.erase(actions_.begin());
            action();
        }
        for (auto* actor : actors_) actor->act(now_);
    }

    TimePoint now_ = start;
    std::vector<Actor*> actors_;
    std::multimap<TimePoint, std::function<void()>> actions_;
};

// File descriptors: what says when one of them has something to read or takes something to write.
class Descriptors {
public:
    int add(std::function<TimePoint()> ready_at) {
        ready_at_.emplace(++last_, std::move(ready_at));
        return last_;
    }
    void remove(int fd) { ready_at_.erase(fd); }

    // When a poll of these would end.
    [[nodiscard]] TimePoint due(std::span<const Watch> watches) const {
        auto first = never;
        for (const auto& watch : watches) {
            first = std::min(first, watch.due);
            if (watch.fd >= 0) first = std::min(first, ready_at_.at(watch.fd)());
        }
        return first;
    }

private:
    int last_ = 100;
    std::map<int, std::function<TimePoint()>> ready_at_;
};

// The run does not come to its end.
struct Stuck : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Counts turns, so that a loop that spins or goes on for ever is found.
class TurnCount {
public:
    void turn(TimePoint now) {
        at_this_instant_ = now == last_ ? at_this_instant_ + 1 : 0;
        last_ = now;
        if (++turns_ > most_turns) throw Stuck("the run goes on for ever");
        if (at_this_instant_ > most_at_an_instant) throw Stuck("the loop spins: it turns without time going by");
    }
    [[nodiscard]] int turns() const noexcept { return turns_; }

private:
    static constexpr int most_turns = 50'000;
    static constexpr int most_at_an_instant = 300;
    int turns_ = 0;
    int at_this_instant_ = 0;
    TimePoint last_{};
};

// For one consumer alone in the world: its waiting is what moves time.
class FakeWaiter : public Waiter {
public:
    FakeWaiter(FakeClock& clock, const Descriptors& descriptors) : clock_(clock), descriptors_(descriptors) {}

    [[nodiscard]] TimePoint now() const override { return clock_.now(); }

    void wait(std::span<const Watch> watches) override {
        count_.turn(clock_.now());
        clock_.advance_to(clock_.now());
        while (descriptors_.due(watches) > clock_.now()) {
            const auto next = std::min(descriptors_.due(watches), clock_.next());
            if (next == never) throw Stuck("nothing will ever wake the loop");
            clock_.advance_to(next);
        }
    }
    [[nodiscard]] int turns() const noexcept { return count_.turns(); }

private:
    FakeClock& clock_;
    const Descriptors& descriptors_;
    TurnCount count_;
};

}  // namespace claimq::fake
