// The Retry-After header of an answer (RFC 9110 section 10.2.3).
#pragma once
#include <chrono>
#include <ctime>
#include <optional>
#include <string_view>

namespace claimq::http {

inline constexpr std::chrono::seconds longest_retry_after{365 * 24 * 3600};  // more is as good as this

// `value` is seconds in decimal digits, or an HTTP-date: then the time from `now` to it, 0 when it is past. Anything
// else, a sign or a fraction too, is nothing.
[[nodiscard]] std::optional<std::chrono::seconds> retry_after(std::string_view value, std::time_t now);

}  // namespace claimq::http
