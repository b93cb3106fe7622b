#include "store/pending_writes.hpp"

#include <string>
#include <utility>

namespace claimq::store {

PendingWrites::PendingWrites(sqlite3* db, ClaimTables& tables, ClaimsInHand& in_hand, WallClock wall_clock)
    : control_(db), tables_(tables), in_hand_(in_hand), wall_clock_(std::move(wall_clock)) {}

void PendingWrites::add(Record record) { records_.push_back(std::move(record)); }

void PendingWrites::add_other_body(Ticket ticket) { other_bodies_.push_back(ticket); }

void PendingWrites::drop_other_body(Ticket ticket) { std::erase(other_bodies_, ticket); }

void PendingWrites::commit(Retention& retention, TimePoint now) {
    Transaction transaction(control_, Access::write);
    const std::string at = utc_text(read(wall_clock_));
    for (const Record& record : records_) write(record, at);
    for (const Ticket ticket : other_bodies_) {
        const Claim& claim = in_hand_.at(ticket);
        tables_.keep_other_body({.id = claim.id, .at = at}, claim.body_sha256, claim.body);
    }
    if (now >= retention.due()) retention.delete_some(now);
    transaction.commit();
}

void PendingWrites::write(const Record& record, std::string_view at) {
    const Claim& claim = in_hand_.at(record.ticket);
    const Fact fact{.id = claim.id, .status = record.status, .at = at};
    switch (record.outcome) {
        case Outcome::accepted: return tables_.add_processed(fact, claim.body_sha256);
        case Outcome::duplicate:
        case Outcome::rejected:
        case Outcome::failed:
        case Outcome::unidentified:
        case Outcome::stopped: return tables_.add_dead_letter(fact, record.outcome, record.reason);
    }
}

void PendingWrites::answer(std::vector<InboxEvent>& events) {
    for (const Record& record : std::exchange(records_, {})) {
        in_hand_.leave_queue(record.ticket);
        in_hand_.forget(record.ticket);
        events.emplace_back(inbox_event::Recorded{record.ticket});
    }
    for (const Ticket ticket : std::exchange(other_bodies_, {})) {
        in_hand_.forget(ticket);
        events.emplace_back(inbox_event::Admitted{ticket, Admission::done_other_body});
    }
}

}  // namespace claimq::store
