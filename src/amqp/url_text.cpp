#include "amqp/url_text.hpp"

#include <algorithm>
#include <charconv>

#include "claimq/failure.hpp"
#include "claimq/utf8.hpp"

namespace claimq::amqp {

namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_control(char32_t c) { return c <= 0x1F || (c >= 0x7F && c <= 0x9F); }

std::optional<char> hex_byte(std::string_view digits) {
    unsigned char byte = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, byte, 16);
    if (digits.size() != 2 || parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
    return static_cast<char>(byte);
}

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string decoded;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            decoded += text[at];
            continue;
        }
        const auto byte = hex_byte(text.substr(at + 1, 2));
        if (!byte) return std::nullopt;
        decoded += *byte;
        at += 2;
    }
    return decoded;
}

}  // namespace

void refuse_url(const std::string& why) { throw Failure{ExitStatus::usage, "AMQP URL: " + why}; }

Halves halves(std::string_view text, char separator) {
    const auto at = text.find(separator);
    if (at == std::string_view::npos) return {text, std::nullopt};
    return {text.substr(0, at), text.substr(at + 1)};
}

std::string decoded_text(const std::string& part, std::string_view raw) {
    const auto text = percent_decoded(raw);
    if (!text) refuse_url(part + " has a % without two hexadecimal digits (a % itself is written %25)");
    for (std::string_view rest = *text; !rest.empty();) {
        const auto next = first_code_point(rest);
        if (!next) refuse_url(part + " is not UTF-8");
        if (is_control(next->value)) refuse_url(part + " has a control character");
        rest.remove_prefix(next->bytes);
    }
    return *text;
}

std::string short_text(const std::string& part, std::string text) {
    if (text.size() > 255) refuse_url(part + " is longer than 255 bytes");
    return text;
}

bool is_host_name(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        const bool ascii = static_cast<unsigned char>(c) < 0x80;
        return !ascii || is_letter_or_digit(c) || c == '-' || c == '.' || c == '_';
    });
}

std::string lower_case(std::string_view text) {
    std::string result{text};
    for (char& c : result) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return result;
}

std::string percent_encoded(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string encoded;
    for (const char c : text) {
        if (is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~') {
            encoded += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            encoded += {'%', digits[byte >> 4u], digits[byte & 0xFu]};
        }
    }
    return encoded;
}

}  // namespace claimq::amqp
