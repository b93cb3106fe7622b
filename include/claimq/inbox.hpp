// The inbox seam: which ids are processed, and which are in somebody's hands.
// One shape for a store that answers at once (SQLite) and one that answers later (a database server): wishes are noted,
// turn() carries them out, and what is answered comes back as events. Nothing here blocks, throws or calls back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "claimq/clock.hpp"
#include "claimq/settlement.hpp"

namespace claimq {

// The loop's number for a delivery in hand, never reused in a run. No delivery tag: tags die with their channel, a
// ticket lives until its outcome is recorded or released.
using Ticket = std::uint64_t;

enum class Admission {
    fresh,            // never processed, and now ours: call it
    done,             // processed with the same body: ack it
    done_other_body,  // processed with another body; the other body is now on disk in the store: warn, and ack it
    held,             // in other hands, of this process or another; the inbox asks again by itself, and another
                      // Admitted follows when the answer changes
};

// What became of a ticket that was `fresh`. Only Outcome::accepted makes the id processed; rejected and failed (to be
// dead-lettered) are kept as facts, and the id may be called again when it is sent again.
struct Record {
    Ticket ticket = 0;
    Outcome outcome = Outcome::accepted;
    int status = 0;      // of the claims system; 0: no answer
    std::string reason;  // at most 1 KiB
};

namespace inbox_event {
struct Admitted {
    Ticket ticket;
    Admission verdict;
};
struct Recorded {  // on disk: only now may it be settled
    Ticket ticket;
};
struct Down {  // busy for longer than commits of others take; no call may be started until Up, those in flight end, and
               // are recorded later
    std::string reason;
};
struct Up {};
struct Broken {  // for good: nothing that was handed in and not answered is on disk; status 74
    std::string reason;
};
}  // namespace inbox_event

using InboxEvent =
    std::variant<inbox_event::Admitted, inbox_event::Recorded, inbox_event::Down, inbox_event::Up, inbox_event::Broken>;

class Inbox {
public:
    virtual ~Inbox() = default;

    // Asks for an id. One Admitted answers, in the next turn() or a later one; after `held`, another. `id` is copied;
    // `body` is not: it stays valid until an answer other than `held`, or until release().
    virtual void admit(Ticket, std::string_view id, std::string_view body) = 0;

    // Hands in what became of a ticket that was `fresh`; of no other. Exactly one Recorded answers, after the commit,
    // which may wait a moment for the outcomes of others; the id is freed after that and not before. Kept and tried
    // again while the store is busy. release() takes nothing back of it.
    virtual void record(Record) = 0;

    // Gives a ticket back without an outcome (requeue, lost channel, end of run), whatever was answered for it so far.
    // Answers nothing, never fails; a ticket that is unknown or done is ignored.
    virtual void release(Ticket) = 0;

    // Once per turn, after the poll: carries out what was noted, all records in one transaction and one flush, and
    // returns what has been answered since, in order.
    [[nodiscard]] virtual std::vector<InboxEvent> turn(TimePoint now) = 0;

    // A `due` in the past (TimePoint{}) is "at once".
    [[nodiscard]] virtual Watch watch() const = 0;
};

}  // namespace claimq
