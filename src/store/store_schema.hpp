// The tables of the store. Ids, reasons and bodies are arbitrary bytes. All are tables with a rowid, which grows with
// every record: so oldest-first needs no index.
#pragma once
#include <string_view>

namespace claimq::store {

inline constexpr int kApplicationId = 0x636C6D71;  // "clmq"; file(1) shows it
inline constexpr int kSchemaVersion = 1;

inline constexpr std::string_view kSchema = R"sql(
PRAGMA application_id = 0x636C6D71;
PRAGMA user_version = 1;
-- Never called again. The claims system accepted the body with this digest.
CREATE TABLE processed(
    message_id TEXT PRIMARY KEY NOT NULL,
    body_sha256 BLOB NOT NULL,
    status INTEGER NOT NULL,
    at TEXT NOT NULL
);
-- What went to claim.dead, as facts: none of these ids is processed by that, and one may be here many times.
CREATE TABLE dead_letters(
    message_id TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
);
-- Other bodies that came under the id of a processed claim: acked without a call, and kept here.
CREATE TABLE other_bodies(
    message_id TEXT NOT NULL,
    body_sha256 BLOB NOT NULL,
    at TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY(message_id, body_sha256)
);
)sql";

}  // namespace claimq::store
