#include "claimq/decimal.hpp"

#include <algorithm>
#include <charconv>

namespace claimq {

namespace {

bool all_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<std::uint64_t> whole_number(std::string_view text, std::uint64_t least, std::uint64_t most) {
    if (!all_digits(text) || (text.size() > 1 && text.front() == '0')) return std::nullopt;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < least || value > most) return std::nullopt;
    return value;
}

std::optional<std::chrono::milliseconds> seconds(std::string_view text) {
    constexpr std::uint64_t ten_years = 315'360'000;  // keeps every sum of deadlines far from overflow
    const auto point = text.find('.');
    const auto whole = whole_number(text.substr(0, point), 0, ten_years);
    if (!whole) return std::nullopt;
    std::uint64_t milliseconds = *whole * 1000;
    if (point != std::string_view::npos) {
        const auto fraction = text.substr(point + 1);
        if (!all_digits(fraction)) return std::nullopt;
        std::uint64_t weight = 100;
        for (const char digit : fraction.substr(0, 3)) {
            milliseconds += static_cast<std::uint64_t>(digit - '0') * weight;
            weight /= 10;
        }
        const auto rest = fraction.substr(std::min<std::size_t>(3, fraction.size()));
        if (rest.find_first_not_of('0') != std::string_view::npos) ++milliseconds;
    }
    return std::chrono::milliseconds{milliseconds};
}

}  // namespace claimq
