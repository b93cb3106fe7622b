#include "http/response.hpp"

#include <strings.h>

#include <algorithm>
#include <utility>

#include "http/retry_after.hpp"

namespace claimq::http {
namespace {

[[nodiscard]] bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[nodiscard]] bool is_empty_line(std::string_view line) { return line == "\r\n" || line == "\n"; }

}  // namespace

std::optional<int> status_of(std::string_view line) {
    constexpr std::string_view protocol = "HTTP/1.";
    if (line.size() < 12 || !line.starts_with(protocol) || !is_digit(line[7]) || line[8] != ' ') return std::nullopt;
    const std::string_view digits = line.substr(9, 3);
    if (!std::all_of(digits.begin(), digits.end(), is_digit) || digits[0] == '0') return std::nullopt;
    constexpr std::string_view separators = " \r\n";
    if (line.size() > 12 && separators.find(line[12]) == std::string_view::npos) return std::nullopt;
    return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

Response::Verdict Response::take_line(std::string_view line) {
    header_bytes_ += line.size();
    if (header_bytes_ > most_header_bytes) return Verdict::stop;
    switch (expect_) {
        case Expect::status_line: return take_status_line(line);
        case Expect::interim_headers:
            if (is_empty_line(line)) expect_ = Expect::status_line;
            break;
        case Expect::headers:
            if (is_empty_line(line)) expect_ = Expect::body;
            take_header(line);
            break;
        case Expect::body: break;  // trailers of a chunked body
    }
    return Verdict::go_on;
}

Response::Verdict Response::take_status_line(std::string_view line) {
    const std::optional<int> status = status_of(line);
    if (!status) return Verdict::stop;
    if (*status < 200) {
        expect_ = Expect::interim_headers;
        return Verdict::go_on;
    }
    status_ = *status;
    expect_ = Expect::headers;
    return Verdict::go_on;
}

void Response::take_header(std::string_view line) {
    constexpr std::string_view name = "retry-after:";
    if (retry_after_ || line.size() < name.size() || strncasecmp(line.data(), name.data(), name.size()) != 0) return;
    retry_after_ = line.substr(name.size());
}

Response::Verdict Response::take_body(std::string_view bytes) {
    if (status_ == 0) return Verdict::stop;  // what follows a 101 that nobody asked for
    reason_.append(bytes.substr(0, most_reason_bytes - reason_.size()));
    body_bytes_ += bytes.size();
    return body_bytes_ > most_body_bytes ? Verdict::stop : Verdict::go_on;
}

std::optional<Answered> Response::answered(std::time_t now) {
    Response received = std::exchange(*this, Response{});
    if (received.status_ == 0) return std::nullopt;
    Answered answer{received.status_, std::nullopt, std::move(received.reason_)};
    if (received.retry_after_) answer.retry_after = retry_after(*received.retry_after_, now);
    return answer;
}

}  // namespace claimq::http
