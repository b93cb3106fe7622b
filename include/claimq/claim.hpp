// The rules of a claim: a JSON object (RFC 8259, UTF-8, no BOM, no NUL) whose `guid` is given once and fit to be an
// AMQP message_id.
#pragma once
#include <string>
#include <string_view>
#include <variant>

namespace claimq {

struct ClaimId {
    std::string guid;
};

struct NoClaim {
    std::string reason;  // "guid is given twice"; names a position where the JSON is broken, quotes nothing of the body
};

// Reads the whole body in one pass without building a tree: nesting costs one bit a level.
[[nodiscard]] std::variant<ClaimId, NoClaim> claim_id(std::string_view body);

// The reason why this guid cannot be used, or an empty string: 1 to 255 bytes (AMQP's shortstr), valid UTF-8,
// no control character (U+0000-001F, U+007F-009F), no white space at its ends.
[[nodiscard]] std::string_view guid_flaw(std::string_view guid);

}  // namespace claimq
