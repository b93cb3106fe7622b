#include "store/admissions.hpp"

namespace claimq::store {

Admissions::Admissions(sqlite3* db, ClaimTables& tables, ClaimsInHand& in_hand, PendingWrites& pending)
    : control_(db), tables_(tables), in_hand_(in_hand), pending_(pending) {}

void Admissions::ask(TimePoint now, std::vector<InboxEvent>& events) {
    const std::vector<LockByte> ours = in_hand_.take_locks(now);
    for (const Finding& finding : look_up(ours)) answer(finding, events);
    for (const Ticket ticket : in_hand_.finish_asking()) {
        events.emplace_back(inbox_event::Admitted{ticket, Admission::held});
    }
}

std::vector<Admissions::Finding> Admissions::look_up(const std::vector<LockByte>& queues) {
    std::vector<Finding> findings;
    const Transaction snapshot(control_, Access::read);
    for (const LockByte byte : queues) look_up(in_hand_.queue(byte), findings);
    return findings;
}

void Admissions::look_up(const std::vector<Ticket>& queue, std::vector<Finding>& findings) {
    for (const Ticket ticket : queue) {
        const Claim& claim = in_hand_.at(ticket);
        if (claim.stage == Stage::fresh || claim.stage == Stage::recording) return;
        findings.push_back({ticket, tables_.look_up(claim.id, claim.body_sha256)});
        if (findings.back().processed == Processed::no) return;  // the others wait for what becomes of this one
    }
}

void Admissions::answer(const Finding& finding, std::vector<InboxEvent>& events) {
    switch (finding.processed) {
        case Processed::no:
            in_hand_.at(finding.ticket).stage = Stage::fresh;
            events.emplace_back(inbox_event::Admitted{finding.ticket, Admission::fresh});
            return;
        case Processed::same_body:
            in_hand_.leave_queue(finding.ticket);
            in_hand_.forget(finding.ticket);
            events.emplace_back(inbox_event::Admitted{finding.ticket, Admission::done});
            return;
        case Processed::other_body:  // answered when that body is on disk
            in_hand_.leave_queue(finding.ticket);
            in_hand_.at(finding.ticket).stage = Stage::keeping_body;
            pending_.add_other_body(finding.ticket);
            return;
    }
}

}  // namespace claimq::store
