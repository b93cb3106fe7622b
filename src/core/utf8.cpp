#include "claimq/utf8.hpp"

namespace claimq {

std::optional<CodePoint> first_code_point(std::string_view text) {
    if (text.empty()) return std::nullopt;
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned lead = byte(0);
    if (lead < 0x80) return CodePoint{lead, 1};
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return std::nullopt;
    char32_t value = lead & (0x7Fu >> length);
    for (std::size_t at = 1; at < length; ++at) {
        if ((byte(at) & 0xC0u) != 0x80u) return std::nullopt;
        value = (value << 6u) | (byte(at) & 0x3Fu);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (value < least[length] || value > 0x10FFFF || surrogate) return std::nullopt;
    return CodePoint{value, length};
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const auto next = first_code_point(text);
        if (!next) return false;
        text.remove_prefix(next->bytes);
    }
    return true;
}

}  // namespace claimq
