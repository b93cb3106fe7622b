#include "store/claim_tables.hpp"

#include <algorithm>
#include <span>

namespace claimq::store {

ClaimTables::ClaimTables(sqlite3* db)
    : find_(db, "SELECT body_sha256 FROM processed WHERE message_id = ?1"),
      add_processed_(db,
                     "INSERT INTO processed(message_id, body_sha256, status, at) VALUES(?1, ?2, ?3, ?4) "
                     "ON CONFLICT(message_id) DO NOTHING"),
      add_dead_letter_(db,
                       "INSERT INTO dead_letters(message_id, outcome, status, reason, at) VALUES(?1, ?2, ?3, ?4, ?5)"),
      keep_other_body_(db,
                       "INSERT INTO other_bodies(message_id, body_sha256, at, body) VALUES(?1, ?2, ?3, ?4) "
                       "ON CONFLICT(message_id, body_sha256) DO NOTHING") {}

Processed ClaimTables::look_up(std::string_view id, const Sha256& body_sha256) {
    Run run(find_);
    if (!run.text(1, id).row()) return Processed::no;
    return std::ranges::equal(run.blob_at(0), body_sha256) ? Processed::same_body : Processed::other_body;
}

void ClaimTables::add_processed(const Fact& fact, const Sha256& body_sha256) {
    Run(add_processed_).text(1, fact.id).blob(2, body_sha256).integer(3, fact.status).text(4, fact.at).done();
}

void ClaimTables::add_dead_letter(const Fact& fact, Outcome outcome, std::string_view reason) {
    const auto word = name(outcome);
    Run(add_dead_letter_)
        .text(1, fact.id)
        .text(2, word)
        .integer(3, fact.status)
        .text(4, reason)
        .text(5, fact.at)
        .done();
}

void ClaimTables::keep_other_body(const Fact& fact, const Sha256& body_sha256, std::string_view body) {
    Run(keep_other_body_)
        .text(1, fact.id)
        .blob(2, body_sha256)
        .text(3, fact.at)
        .blob(4, std::as_bytes(std::span(body)))
        .done();
}

}  // namespace claimq::store
