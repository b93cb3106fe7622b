// The value of a Retry-After header: digits are seconds, a date is the time until it, all within bounds.
#include "http/retry_after.hpp"

#include <algorithm>
#include <string>

#include "property.hpp"

namespace claimq::http {
namespace {

using fuzz::must;

constexpr std::time_t now = 1'800'000'000;

std::string_view trimmed(std::string_view text) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

bool all_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::chrono::seconds expected_seconds(std::string_view digits) {
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.size() > 9) return longest_retry_after;
    return std::min(std::chrono::seconds(digits.empty() ? 0 : std::stol(std::string(digits))), longest_retry_after);
}

void check(std::string_view value) {
    const auto wait = retry_after(value, now);
    must(!wait || (wait->count() >= 0 && *wait <= longest_retry_after), "it is within its bounds");
    must(retry_after(" \t" + std::string(value) + " \r\n", now) == wait, "white space around it changes nothing");
    value = trimmed(value);
    if (all_digits(value)) return must(wait == expected_seconds(value), "digits are seconds", value);
    if (!wait) return;
    const auto later = retry_after(value, now + 60);
    must(later.has_value() && *later <= *wait && *wait - *later <= std::chrono::seconds(60),
         "a date comes nearer as time goes by, seconds do not", value);
    must(std::ranges::count(value, ':') == 2, "a date has a time of day", value);
}

}  // namespace
}  // namespace claimq::http

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    claimq::http::check(claimq::fuzz::text_of(data, size));
    return 0;
}
