// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace claimq {

struct CodePoint {
    char32_t value = 0;
    std::size_t bytes = 0;
};

// The character that `text` starts with; nothing when it is empty or no UTF-8.
[[nodiscard]] std::optional<CodePoint> first_code_point(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace claimq
