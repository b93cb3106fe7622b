// The Idempotency-Key header of a call.
#pragma once
#include <string>
#include <string_view>

namespace claimq::http {

// `Idempotency-Key: "<message_id>"`, an RFC 8941 string (section 3.3.3). A foreign message_id is arbitrary bytes and
// libcurl sends CR and LF inside a header value as they are, so bytes outside 0x20-0x7E and `"` `\` `%` become %XX:
// no id can add a header, and no two ids give the same key.
[[nodiscard]] std::string idempotency_key_header(std::string_view message_id);

}  // namespace claimq::http
