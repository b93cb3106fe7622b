#include "http/retry_after.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <string>

namespace claimq::http {
namespace {

[[nodiscard]] std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const auto first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

[[nodiscard]] bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[nodiscard]] std::chrono::seconds seconds_of(std::string_view digits) {
    std::chrono::seconds sum{0};
    for (const char c : digits) sum = std::min(sum * 10 + std::chrono::seconds(c - '0'), longest_retry_after);
    return sum;
}

// All three forms of RFC 9110 section 5.6.7 begin with a weekday and hold a time of day. curl_getdate alone would
// read much more as a date ("10", "1.5", a lone month).
[[nodiscard]] bool looks_like_http_date(std::string_view text) {
    constexpr std::array<std::string_view, 7> weekdays{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    return std::count(text.begin(), text.end(), ':') == 2 &&
           std::any_of(weekdays.begin(), weekdays.end(), [&](auto day) { return text.starts_with(day); });
}

}  // namespace

std::optional<std::chrono::seconds> retry_after(std::string_view value, std::time_t now) {
    value = trimmed(value);
    if (value.empty()) return std::nullopt;
    if (std::all_of(value.begin(), value.end(), is_digit)) return seconds_of(value);
    if (!looks_like_http_date(value)) return std::nullopt;
    const std::time_t date = curl_getdate(std::string(value).c_str(), nullptr);
    if (date == -1) return std::nullopt;
    return std::clamp(std::chrono::seconds(date - now), std::chrono::seconds(0), longest_retry_after);
}

}  // namespace claimq::http
