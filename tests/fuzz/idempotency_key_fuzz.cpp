// The Idempotency-Key of any message_id: one header line of printable ASCII, a string as RFC 8941 has it, which decodes
// to the id.
#include "http/idempotency_key.hpp"

#include "property.hpp"

namespace claimq::http {
namespace {

using fuzz::must;

int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    must(c >= 'A' && c <= 'F', "an escape has two upper-case hexadecimal digits");
    return c - 'A' + 10;
}

std::string decoded(std::string_view key) {
    std::string id;
    for (std::size_t at = 0; at < key.size(); ++at) {
        if (key[at] != '%') {
            id += key[at];
            continue;
        }
        must(at + 2 < key.size(), "an escape is whole");
        id += static_cast<char>(hex(key[at + 1]) * 16 + hex(key[at + 2]));
        at += 2;
    }
    return id;
}

void check(std::string_view id) {
    constexpr std::string_view start = "Idempotency-Key: \"";
    const auto header = idempotency_key_header(id);
    must(fuzz::is_printable_ascii(header), "it is printable ASCII", header);
    must(header.size() > start.size() && header.starts_with(start) && header.ends_with('"'), "it is one header",
         header);
    const auto key = std::string_view(header).substr(start.size(), header.size() - start.size() - 1);
    must(key.find_first_of("\"\\") == std::string_view::npos, "nothing in it ends the string or escapes", key);
    must(decoded(key) == id, "it decodes to the id", key);
    must(key.size() <= 3 * id.size(), "it is at most three times as long", key);
}

}  // namespace
}  // namespace claimq::http

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    claimq::http::check(claimq::fuzz::text_of(data, size));
    return 0;
}
