// Answers who may be called: lock, then look whether it is processed.
#pragma once
#include <vector>

#include "claimq/inbox.hpp"
#include "store/claim_tables.hpp"
#include "store/claims_in_hand.hpp"
#include "store/pending_writes.hpp"
#include "store/sqlite.hpp"

namespace claimq::store {

class Admissions {
public:
    Admissions(sqlite3*, ClaimTables&, ClaimsInHand&, PendingWrites&);

    // All locks first, then one snapshot, opened after the last of them: so a claim that another consumer committed
    // before it gave up its lock is seen. The snapshot is closed before the next lock is asked for.
    // When it throws, nothing is answered and the same is asked again.
    void ask(TimePoint now, std::vector<InboxEvent>&);

private:
    struct Finding {
        Ticket ticket;
        Processed processed;
    };
    [[nodiscard]] std::vector<Finding> look_up(const std::vector<LockByte>& queues);
    void look_up(const std::vector<Ticket>& queue, std::vector<Finding>&);
    void answer(const Finding&, std::vector<InboxEvent>&);

    TransactionControl control_;
    ClaimTables& tables_;
    ClaimsInHand& in_hand_;
    PendingWrites& pending_;
};

}  // namespace claimq::store
