#include "claimq/settlement.hpp"

#include <algorithm>

namespace claimq {

Outcome classify(const Answered& answer, const Policy& policy) {
    const auto holds = [&](const std::vector<int>& list) {
        return std::ranges::find(list, answer.status) != list.end();
    };
    if (holds(policy.accept)) return Outcome::accepted;
    if (holds(policy.reject)) return Outcome::rejected;
    if (holds(policy.stop_on)) return Outcome::stopped;
    return Outcome::failed;
}

std::string_view name(CallFailure how) noexcept {
    switch (how) {
        case CallFailure::refused: return "refused";
        case CallFailure::unresolved: return "unresolved";
        case CallFailure::timed_out: return "timed out";
        case CallFailure::cut: return "cut";
        case CallFailure::garbage: return "garbage";
    }
    return "?";
}

std::string_view name(Outcome outcome) noexcept {
    switch (outcome) {
        case Outcome::accepted: return "accepted";
        case Outcome::duplicate: return "duplicate";
        case Outcome::rejected: return "rejected";
        case Outcome::failed: return "failed";
        case Outcome::unidentified: return "unidentified";
        case Outcome::stopped: return "stopped";
    }
    return "?";
}

std::string_view name(Settlement settlement) noexcept {
    switch (settlement) {
        case Settlement::ack: return "ack";
        case Settlement::requeue: return "requeue";
        case Settlement::dead_letter: return "dead-letter";
        case Settlement::hand_back: return "hand-back";
    }
    return "?";
}

}  // namespace claimq
