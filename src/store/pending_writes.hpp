// What goes to disk with the next commit, and is answered after it.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "claimq/inbox.hpp"
#include "store/claim_tables.hpp"
#include "store/claims_in_hand.hpp"
#include "store/retention.hpp"
#include "store/sqlite.hpp"
#include "store/utc_text.hpp"

namespace claimq::store {

class PendingWrites {
public:
    PendingWrites(sqlite3*, ClaimTables&, ClaimsInHand&, WallClock);

    void add(Record);
    void add_other_body(Ticket);
    void drop_other_body(Ticket);
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return records_.size() + other_bodies_.size(); }

    // All of it in one transaction and one flush, some of what retention deletes with it. May be a commit of nothing.
    // When it throws, nothing is written and all is still pending.
    void commit(Retention&, TimePoint now);

    // After the commit: the ids are freed.
    void answer(std::vector<InboxEvent>&);

private:
    void write(const Record&, std::string_view at);

    TransactionControl control_;
    ClaimTables& tables_;
    ClaimsInHand& in_hand_;
    WallClock wall_clock_;
    std::vector<Record> records_;
    std::vector<Ticket> other_bodies_;
};

}  // namespace claimq::store
