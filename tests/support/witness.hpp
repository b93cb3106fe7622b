// What happened that outlives a process or that another can see, told in the order in which it happened; and the
// process itself, which can die between any two steps.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "claimq/answer.hpp"
#include "claimq/clock.hpp"
#include "claimq/delivery.hpp"
#include "claimq/settlement.hpp"

namespace claimq::fake {

enum class Effect {
    connected,
    handed_over,     // a message to a session, by the broker
    delivered,       // read by the consumer
    lock_taken,      // on the id, in the store
    call_begun,      // `answer` is what the claims system will say
    call_processed,  // by the claims system, whoever still waits for the answer
    call_ended,      // the consumer has its `answer`
    recorded,        // committed
    body_kept,       // of another claim with the same id: committed
    settling,        // handed to the channel
    written,         // the settlement left the process
    settled,         // by the broker
    cancelling,      // basic.cancel left the process
    cancelled,       // by the broker
    lost,            // the connection, as the consumer sees it
    taken_back,      // by the broker, to the queue, since the connection is lost
};

struct Happened {
    Effect effect;
    int process = 0;
    std::string id{};  // the message_id, where it is about one claim
    int message = 0;   // the broker's number
    Settlement settlement = Settlement::ack;
    Redelivered redelivered = Redelivered::no;
    Outcome outcome = Outcome::failed;
    const Answer* answer = nullptr;
    bool in_time = true;  // call_begun: the answer comes within the timeout
};

[[nodiscard]] constexpr std::string_view name(Effect effect) {
    switch (effect) {
        case Effect::connected: return "connected";
        case Effect::handed_over: return "handed over";
        case Effect::delivered: return "delivered";
        case Effect::lock_taken: return "lock taken";
        case Effect::call_begun: return "call begun";
        case Effect::call_processed: return "call processed";
        case Effect::call_ended: return "call ended";
        case Effect::recorded: return "recorded";
        case Effect::body_kept: return "body kept";
        case Effect::settling: return "settling";
        case Effect::written: return "written";
        case Effect::settled: return "settled";
        case Effect::cancelling: return "cancelling";
        case Effect::cancelled: return "cancelled";
        case Effect::lost: return "lost";
        case Effect::taken_back: return "taken back";
    }
    return "?";
}

[[nodiscard]] inline std::string text_of(const Answer& answer) {
    if (const auto* answered = std::get_if<Answered>(&answer)) return std::to_string(answered->status);
    if (const auto* none = std::get_if<NotAnswered>(&answer)) return std::string(name(none->how));
    return "own fault";
}

// "settled c1 ack": for a person, and to compare the order of things.
[[nodiscard]] inline std::string text_of(const Happened& one) {
    std::string text(name(one.effect));
    if (!one.id.empty()) text += " " + one.id;
    if (one.effect == Effect::settling || one.effect == Effect::written || one.effect == Effect::settled)
        text += " " + std::string(name(one.settlement));
    if (one.answer != nullptr) text += " " + text_of(*one.answer);
    if (one.effect == Effect::recorded) text += " " + std::string(name(one.outcome));
    return text;
}

class Witness {
public:
    void tell(std::function<void(const Happened&)> listener) { listeners_.push_back(std::move(listener)); }
    void saw(const Happened& one) const {
        for (const auto& listener : listeners_) listener(one);
    }

private:
    std::vector<std::function<void(const Happened&)>> listeners_;
};

// Thrown through the loop: the process is no more.
struct Died {};

class Process {
public:
    explicit Process(int number = 1) : number_(number) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] bool doomed() const noexcept { return doomed_; }
    void die() noexcept { doomed_ = true; }  // at its next step

    // Between any two things that a process does: here it may die, and others may come to act.
    void step() const {
        if (!doomed_ && at_step) at_step();
        if (doomed_) throw Died{};
    }
    std::function<void()> at_step;
    std::function<void(Milliseconds)> sleep;  // in the disk's hands, say; nothing: the whole world stands by

private:
    int number_;
    bool doomed_ = false;
};

}  // namespace claimq::fake
