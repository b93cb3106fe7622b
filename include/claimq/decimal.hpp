// Numbers from outside (options, URL values, headers): plain decimals. No hexadecimal, octal, nan, inf, sign, exponent
// or white space, and an empty text is no number.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace claimq {

// Digits only, without leading zeros that would make it look octal ("0" is fine, "010" is not).
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text, std::uint64_t least, std::uint64_t most);

// Seconds with an optional fraction ("3.5", ".5" is not one), rounded up to milliseconds.
[[nodiscard]] std::optional<std::chrono::milliseconds> seconds(std::string_view text);

}  // namespace claimq
