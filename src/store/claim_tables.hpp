// The statements of the store's three tables, prepared once.
#pragma once
#include <string_view>

#include "claimq/settlement.hpp"
#include "store/sha256.hpp"
#include "store/sqlite.hpp"

namespace claimq::store {

enum class Processed { no, same_body, other_body };

// What all rows have: whose, what the claims system said, when.
struct Fact {
    std::string_view id;
    int status = 0;
    std::string_view at;
};

class ClaimTables {
public:
    explicit ClaimTables(sqlite3*);

    [[nodiscard]] Processed look_up(std::string_view id, const Sha256& body_sha256);

    // An id that is there already was called twice past this store (the honest boundary of README): the first stays.
    void add_processed(const Fact&, const Sha256& body_sha256);
    void add_dead_letter(const Fact&, Outcome, std::string_view reason);
    // The same other body is kept once, however often it comes.
    void keep_other_body(const Fact&, const Sha256& body_sha256, std::string_view body);

private:
    Statement find_, add_processed_, add_dead_letter_, keep_other_body_;
};

}  // namespace claimq::store
