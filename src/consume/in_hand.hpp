// The deliveries that this consumer holds, by ticket.
#pragma once
#include <string>
#include <unordered_map>

#include "claimq/delivery.hpp"
#include "claimq/inbox.hpp"

namespace claimq::consume {

enum class Stage {
    asked,      // the inbox was asked for its id
    held,       // the id is in other hands; the inbox answers again
    ready,      // ours, and not called yet
    calling,    // the claims system is being called
    recording,  // its outcome is being recorded
    waiting,    // it will be requeued after a delay
};

// How the call for a delivery ended.
struct Result {
    Outcome outcome = Outcome::failed;
    int status = 0;  // 0: no answer
    std::string reason;
    Milliseconds took{0};
};

struct Held {
    Delivery delivery;
    std::string id;
    Stage stage = Stage::asked;
    bool tag_is_void = false;  // its channel is gone: its outcome is still recorded, but it cannot be settled
    Result result;
};

class InHand {
public:
    Ticket add(Delivery delivery, std::string id) {
        held_.emplace(++last_, Held{std::move(delivery), std::move(id), Stage::asked, false, {}});
        return last_;
    }
    // The reference is good until the ticket is removed. Nothing when the ticket is not (any more) in hand.
    [[nodiscard]] Held* find(Ticket ticket) {
        const auto at = held_.find(ticket);
        return at == held_.end() ? nullptr : &at->second;
    }
    void remove(Ticket ticket) { held_.erase(ticket); }
    [[nodiscard]] bool empty() const noexcept { return held_.empty(); }
    [[nodiscard]] auto begin() noexcept { return held_.begin(); }
    [[nodiscard]] auto end() noexcept { return held_.end(); }

private:
    Ticket last_ = 0;
    std::unordered_map<Ticket, Held> held_;  // node-based: bodies are borrowed by the calls and the inbox
};

}  // namespace claimq::consume
