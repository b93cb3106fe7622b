#include "http/idempotency_key.hpp"

namespace claimq::http {
namespace {

[[nodiscard]] constexpr bool goes_as_it_is(unsigned char byte) {
    return byte >= 0x20 && byte <= 0x7E && byte != '"' && byte != '\\' && byte != '%';
}

}  // namespace

std::string idempotency_key_header(std::string_view message_id) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string header = "Idempotency-Key: \"";
    header.reserve(header.size() + message_id.size() + 1);
    for (const char c : message_id) {
        const auto byte = static_cast<unsigned char>(c);
        if (goes_as_it_is(byte)) {
            header += c;
        } else {
            header += '%';
            header += digits[byte >> 4];
            header += digits[byte & 0xF];
        }
    }
    header += '"';
    return header;
}

}  // namespace claimq::http
