// Text in an AMQP URL.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace claimq::amqp {

// Throws Failure{usage}. `why` is made of our own words: any piece of a broken URL can be half a password.
[[noreturn]] void refuse_url(const std::string& why);

struct Halves {
    std::string_view before;
    std::optional<std::string_view> after;  // nothing: no separator
};

// At the first `separator`.
[[nodiscard]] Halves halves(std::string_view text, char separator);

// Percent-decoded; refused unless it is UTF-8 without control characters. A "+" is a plus sign: that it means a space
// is a rule of HTML forms. `part` is what messages call it.
[[nodiscard]] std::string decoded_text(const std::string& part, std::string_view raw);

// Refused when it does not fit AMQP's short strings.
[[nodiscard]] std::string short_text(const std::string& part, std::string text);

// Letters, digits, "-._" and everything that is not ASCII; without a look at labels and lengths, which is the
// resolver's.
[[nodiscard]] bool is_host_name(std::string_view text);

// ASCII letters only.
[[nodiscard]] std::string lower_case(std::string_view text);

// Every byte but ASCII letters, digits and "-._~".
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace claimq::amqp
