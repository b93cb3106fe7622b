#include "checker.hpp"

#include <algorithm>

namespace claimq::sweep {

using fake::Effect;
using fake::Happened;

Checker::Checker(fake::World& world) : world_(world) {
    world.witness.tell([this](const Happened& one) { on(one); });
}

void Checker::published(int message, const std::string& id, const std::string& body) {
    messages_[message] = {id, body, 0, 0, Redelivered::no};
    ++claims_[id].allowed;
}

void Checker::started(int process, const consume::Options& options) { running_[process] = options; }

void Checker::violation(const std::string& text) {
    const auto time = std::chrono::duration_cast<Milliseconds>(world_.clock.now() - fake::FakeClock::start);
    violations_.push_back("at " + std::to_string(time.count()) + " ms: " + text);
}

void Checker::on(const Happened& one) {
    ++event_;
    for (; errors_ < world_.broker.errors().size(); ++errors_) violation(world_.broker.errors()[errors_]);
    switch (one.effect) {
        case Effect::handed_over: return handed_over(one);
        case Effect::call_begun: return call_begun(one);
        case Effect::call_ended: return call_ended(one);
        case Effect::recorded: return recorded(one);
        case Effect::settling: return settling(one);
        case Effect::settled: return settled(one);
        case Effect::taken_back: return taken_back(one);
        case Effect::connected:
        case Effect::delivered:
        case Effect::lock_taken:
        case Effect::call_processed:
        case Effect::body_kept:
        case Effect::written:
        case Effect::cancelling:
        case Effect::cancelled:
        case Effect::lost: return;
    }
}

void Checker::handed_over(const Happened& one) {
    auto& message = messages_.at(one.message);
    message.holder = one.process;
    message.handed_over = event_;
    message.redelivered = one.redelivered;
}

// ---- calls

void Checker::call_begun(const Happened& one) {
    auto& claim = claims_[one.id];
    if (one.id.empty()) violation("called what nothing identifies");
    if (world_.store.processed.contains(one.id)) violation("called " + one.id + ", which is recorded as processed");
    for (const auto& [process, call] : claim.last_of) {
        if (call.in_flight) violation("two calls of " + one.id + " in flight");
        if (call.truth == Outcome::accepted && !call.excused)
            violation("called " + one.id + " again, which was answered as accepted to a process that lives");
    }
    if (!holds(one.process, one.id)) ++claim.allowed;  // taken back already, and not heard of yet
    if (++claim.calls > claim.allowed) violation("called " + one.id + " again without an excuse");
    auto& call = claim.last_of[one.process] = Call{event_, {}};
    if (one.in_time) call.truth = meaning(*one.answer, one.process);
    call.is_own_fault = std::holds_alternative<OwnFault>(*one.answer);
    if (calls_in_flight_of(one.process) > running_.at(one.process).concurrency)
        violation("more calls in flight than --concurrency");
}

int Checker::calls_in_flight_of(int process) const {
    return static_cast<int>(std::ranges::count_if(claims_, [&](const auto& one) {
        const auto at = one.second.last_of.find(process);
        return at != one.second.last_of.end() && at->second.in_flight;
    }));
}

bool Checker::holds(int process, const std::string& id) const {
    return std::ranges::any_of(messages_,
                               [&](const auto& one) { return one.second.id == id && one.second.holder == process; });
}

void Checker::call_ended(const Happened& one) {
    auto& call = claims_[one.id].last_of[one.process];
    call.in_flight = false;
    if (!call.truth) call.truth = meaning(*one.answer, one.process);
}

Outcome Checker::meaning(const Answer& answer, int process) const {
    const auto* answered = std::get_if<Answered>(&answer);
    return answered == nullptr ? Outcome::failed : classify(*answered, running_.at(process).policy);
}

void Checker::recorded(const Happened& one) {
    auto& call = claims_[one.id].last_of[one.process];
    if (call.in_flight || call.is_own_fault || call.truth != one.outcome)
        return violation("recorded " + one.id + " as " + std::string(name(one.outcome)) + ", which was not the answer");
    call.recorded = true;
}

// ---- settlements

// What the loop decides, at the moment when it does.
void Checker::settling(const Happened& one) {
    if (one.message == 0) return;  // the broker has taken it back already, and not told
    const auto& message = messages_.at(one.message);
    switch (one.settlement) {
        case Settlement::ack: return check_ack(message);
        case Settlement::dead_letter: return check_dead_letter(message, one.process);
        case Settlement::requeue: return check_requeue(message, one.process);
        case Settlement::hand_back: return check_hand_back(message, one.process);
    }
}

void Checker::check_ack(const Message& message) {
    const auto& store = world_.store;
    const auto at = store.processed.find(message.id);
    if (at == store.processed.end()) return violation("acked " + message.id + ", which is not recorded");
    if (at->second != message.body && !store.other_bodies.contains({message.id, message.body}))
        violation("acked another body of " + message.id + ", which is not kept");
}

// The call that this process made since it has the message; for this one, or for another with its id.
const Checker::Call* Checker::call_for(const Message& message, int process) const {
    const auto& calls = claims_.at(message.id).last_of;
    const auto at = calls.find(process);
    return at != calls.end() && at->second.begun > message.handed_over ? &at->second : nullptr;
}

void Checker::check_dead_letter(const Message& message, int process) {
    if (message.id.empty()) return;
    const auto* call = call_for(message, process);
    if (call == nullptr || call->in_flight || call->is_own_fault)
        return violation("dead-lettered " + message.id + " without an answer");
    if (!call->recorded) violation("dead-lettered " + message.id + " before it was recorded");
    if (call->truth == Outcome::rejected) return;
    if (call->truth != Outcome::failed || message.redelivered == Redelivered::no)
        violation("dead-lettered " + message.id + " after the answer " + std::string(name(*call->truth)));
}

void Checker::check_requeue(const Message& message, int process) {
    const auto* call = call_for(message, process);
    if (call == nullptr || call->in_flight || call->is_own_fault)
        return violation("requeued " + message.id + " without an answer");
    if (call->truth == Outcome::stopped) return;
    if (call->truth != Outcome::failed || message.redelivered == Redelivered::yes)
        violation("requeued " + message.id + " after the answer " + std::string(name(*call->truth)));
}

void Checker::check_hand_back(const Message& message, int process) {
    if (call_for(message, process) != nullptr && is_the_only_one(message))
        violation("handed back " + message.id + ", which was called");
}

// Else a call may have been for another message with its id.
bool Checker::is_the_only_one(const Message& message) const {
    return 1 == std::ranges::count_if(messages_, [&](const auto& one) { return one.second.id == message.id; });
}

void Checker::settled(const Happened& one) {
    auto& message = messages_.at(one.message);
    message.holder = 0;
    if (one.settlement == Settlement::ack) check_ack(message);
    if (one.settlement == Settlement::requeue) ++claims_[message.id].allowed;
}

void Checker::taken_back(const Happened& one) {
    auto& message = messages_.at(one.message);
    message.holder = 0;
    if (call_for(message, one.process) != nullptr) ++claims_[message.id].allowed;
}

// ---- processes

void Checker::gone(int process) {
    for (auto& [id, claim] : claims_) {
        const auto call = claim.last_of.find(process);
        if (call == claim.last_of.end()) continue;
        call->second.in_flight = false;
        call->second.excused = true;
    }
}

void Checker::died(int process) { gone(process); }

void Checker::ended(int process, ExitStatus status) {
    for (const auto& [id, claim] : claims_) {
        const auto call = claim.last_of.find(process);
        if (call == claim.last_of.end() || status == ExitStatus::store) continue;
        if (call->second.in_flight) violation("ended with a call of " + id + " in flight");
        if (call->second.truth == Outcome::accepted && !world_.store.processed.contains(id))
            violation("ended without 74 and without a record of " + id);
    }
    gone(process);
}

void Checker::drained() {
    const auto& broker = world_.broker;
    for (const auto& [number, message] : broker.ready()) violation("still queued: " + message.message_id);
    for (const auto& message : broker.unacked()) violation("still unacked: " + message.message_id);
    if (broker.acked().size() + broker.dead().size() != messages_.size()) violation("messages have vanished");
}

}  // namespace claimq::sweep
