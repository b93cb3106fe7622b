// What can go wrong with the store, inside src/store. The Inbox turns these into events, its opening into a Failure;
// the file's name is added there.
#pragma once
#include <stdexcept>

namespace claimq::store {

// Somebody else has it locked; nothing was written. The same again may work later.
struct StoreBusy : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// For good: full, unreadable, deleted, not ours. Nothing of the transaction may be taken as written.
struct StoreFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace claimq::store
