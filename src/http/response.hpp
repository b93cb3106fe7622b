// What has been received of one answer, line by line, with a bound on all of it. Knows nothing of libcurl.
#pragma once
#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "claimq/answer.hpp"

namespace claimq::http {

// "HTTP/1.1 201 Created" -> 201; 100 to 999, version 1.x. Stricter than libcurl, which takes "HTTP/1.1 99 x".
[[nodiscard]] std::optional<int> status_of(std::string_view line);

class Response {
public:
    static constexpr std::size_t most_header_bytes =
        std::size_t{64} * 1024;  // of all answers to a call, the interim ones too
    static constexpr std::size_t most_body_bytes = std::size_t{64} * 1024;
    static constexpr std::size_t most_reason_bytes = 1024;

    enum class Verdict { go_on, stop };  // stop: what follows cannot change the answer any more

    // One whole line with its line end: a status line, a header, the empty line, a trailer.
    [[nodiscard]] Verdict take_line(std::string_view line);
    [[nodiscard]] Verdict take_body(std::string_view bytes);

    // All that decides has been received: the status and the headers.
    [[nodiscard]] bool awaits_body() const noexcept { return expect_ == Expect::body; }

    // When a final status line has been received, that is the answer, whatever became of the rest. Leaves *this empty.
    [[nodiscard]] std::optional<Answered> answered(std::time_t now);

private:
    enum class Expect { status_line, interim_headers, headers, body };

    [[nodiscard]] Verdict take_status_line(std::string_view line);
    void take_header(std::string_view line);

    Expect expect_ = Expect::status_line;
    int status_ = 0;
    std::size_t header_bytes_ = 0;
    std::size_t body_bytes_ = 0;
    std::optional<std::string> retry_after_;
    std::string reason_;
};

}  // namespace claimq::http
