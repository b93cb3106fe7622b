#include "store/claims_in_hand.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace claimq::store {

void ClaimsInHand::add(Ticket ticket, std::string_view id, std::string_view body) {
    const LockByte byte = lock_byte(id);
    [[maybe_unused]] const bool is_new =
        claims_.try_emplace(ticket, Claim{std::string(id), body, sha256(body), byte}).second;
    assert(is_new);  // tickets are never reused
    Queue& queue = queues_[byte];
    queue.tickets.push_back(ticket);
    list(byte, queue);
}

Claim* ClaimsInHand::find(Ticket ticket) {
    const auto found = claims_.find(ticket);
    return found == claims_.end() ? nullptr : &found->second;
}

Claim& ClaimsInHand::at(Ticket ticket) { return claims_.at(ticket); }

void ClaimsInHand::leave_queue(Ticket ticket) {
    const LockByte byte = at(ticket).byte;
    Queue& queue = queues_.at(byte);
    std::erase(queue.tickets, ticket);
    if (!queue.tickets.empty()) return list(byte, queue);
    if (queue.lock == Lock::ours) locks_.free(byte);
    queue.lock = Lock::none;
    if (queue.listed == Listed::no) queues_.erase(byte);  // else finish_asking() does
}

void ClaimsInHand::forget(Ticket ticket) { claims_.erase(ticket); }

TimePoint ClaimsInHand::due() const noexcept {
    if (!to_ask_.empty()) return TimePoint{};
    return elsewhere_.empty() ? TimePoint::max() : ask_again_at_;
}

std::vector<LockByte> ClaimsInHand::take_locks(TimePoint now) {
    list_those_elsewhere(now);
    std::vector<LockByte> ours;
    for (const LockByte byte : to_ask_) {
        Queue& queue = queues_.at(byte);
        if (queue.tickets.empty()) continue;
        take_lock(byte, queue);
        if (queue.lock == Lock::ours) ours.push_back(byte);
    }
    return ours;
}

std::vector<Ticket> ClaimsInHand::finish_asking() {
    std::vector<Ticket> told;
    for (const LockByte byte : std::exchange(to_ask_, {})) {
        Queue& queue = queues_.at(byte);
        queue.listed = Listed::no;
        tell_held(queue, told);
        if (queue.tickets.empty()) queues_.erase(byte);
    }
    return told;
}

void ClaimsInHand::list(LockByte byte, Queue& queue) {
    if (queue.listed == Listed::yes) return;
    queue.listed = Listed::yes;
    to_ask_.push_back(byte);
}

void ClaimsInHand::list_those_elsewhere(TimePoint now) {
    if (elsewhere_.empty()) ask_again_at_ = now + kAskAgainAfter;
    if (now < ask_again_at_) return;
    ask_again_at_ = now + kAskAgainAfter;
    for (const LockByte byte : std::exchange(elsewhere_, {})) {
        const auto found = queues_.find(byte);
        if (found == queues_.end() || found->second.lock != Lock::elsewhere) continue;
        found->second.lock = Lock::none;
        list(byte, found->second);
    }
}

void ClaimsInHand::take_lock(LockByte byte, Queue& queue) {
    if (queue.lock != Lock::none) return;
    switch (locks_.take(byte)) {
        case InflightLocks::Attempt::ours: queue.lock = Lock::ours; return;
        case InflightLocks::Attempt::held_elsewhere:
            queue.lock = Lock::elsewhere;
            elsewhere_.push_back(byte);
            return;
    }
}

// Those that know it already are before those that do not.
void ClaimsInHand::tell_held(const Queue& queue, std::vector<Ticket>& told) {
    auto first = queue.tickets.end();
    while (first != queue.tickets.begin() && at(*std::prev(first)).stage == Stage::asked) --first;
    for (; first != queue.tickets.end(); ++first) {
        at(*first).stage = Stage::told_held;
        told.push_back(*first);
    }
}

}  // namespace claimq::store
