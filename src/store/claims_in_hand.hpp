// The tickets of this process, in a queue per lock byte: its first has the id or asks for it, the others wait behind
// it.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "claimq/inbox.hpp"
#include "store/inflight_locks.hpp"
#include "store/sha256.hpp"

namespace claimq::store {

enum class Stage {
    asked,         // not answered yet
    told_held,     // waits, and knows it
    fresh,         // first in its queue, being called
    recording,     // its outcome was handed in
    keeping_body,  // processed with another body, which is to be written; in no queue any more
};

struct Claim {
    std::string id;
    std::string_view body;
    Sha256 body_sha256{};
    LockByte byte = 0;
    Stage stage = Stage::asked;
};

class ClaimsInHand {
public:
    static constexpr Milliseconds kAskAgainAfter{100};  // what another process has

    explicit ClaimsInHand(const std::filesystem::path& lock_file) : locks_(lock_file) {}

    void add(Ticket, std::string_view id, std::string_view body);
    [[nodiscard]] Claim* find(Ticket);
    [[nodiscard]] Claim& at(Ticket);
    [[nodiscard]] std::size_t size() const noexcept { return claims_.size(); }

    // Takes it out of its queue. After the last one the byte is free; else it is the next one's turn, still under the
    // same lock.
    void leave_queue(Ticket);
    void forget(Ticket);

    // When take_locks() has something to do; the epoch: at once.
    [[nodiscard]] TimePoint due() const noexcept;

    // Takes the locks of all queues that are to be asked, and returns those that are ours. Nothing is answered yet:
    // until finish_asking() the same may be asked again.
    [[nodiscard]] std::vector<LockByte> take_locks(TimePoint now);
    [[nodiscard]] const std::vector<Ticket>& queue(LockByte byte) const { return queues_.at(byte).tickets; }
    // Returns the tickets that wait from now on.
    [[nodiscard]] std::vector<Ticket> finish_asking();

private:
    enum class Lock { none, ours, elsewhere };
    enum class Listed { no, yes };
    struct Queue {
        Lock lock = Lock::none;
        Listed listed = Listed::no;  // in to_ask_
        std::vector<Ticket> tickets;
    };
    void list(LockByte, Queue&);
    void list_those_elsewhere(TimePoint now);
    void take_lock(LockByte, Queue&);
    void tell_held(const Queue&, std::vector<Ticket>& told);

    InflightLocks locks_;
    std::unordered_map<Ticket, Claim> claims_;
    std::unordered_map<LockByte, Queue> queues_;
    std::vector<LockByte> to_ask_;     // each once, see Queue::listed
    std::vector<LockByte> elsewhere_;  // may name queues that are gone
    TimePoint ask_again_at_{};
};

}  // namespace claimq::store
