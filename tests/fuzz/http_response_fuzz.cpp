// An answer's lines and body, in any order libcurl could hand them over: bounded, and the status is that of the first
// final status line.
//
// The input: pieces, each ended by LF. A piece that begins with "~" is body: what follows, "~~" of it 32 times over.
#include "http/response.hpp"

#include <optional>
#include <string>

#include "http/retry_after.hpp"
#include "property.hpp"

namespace claimq::http {
namespace {

using fuzz::must;

constexpr std::time_t now = 1'800'000'000;

// Read by another way than status_of(): the number first.
std::optional<int> expected_status(std::string_view line) {
    if (line.substr(0, 7) != "HTTP/1." || line.size() < 12) return std::nullopt;
    int status = 0;
    for (const char c : line.substr(9, 3)) status = c >= '0' && c <= '9' ? status * 10 + (c - '0') : -10'000;
    const bool version = line[7] >= '0' && line[7] <= '9' && line[8] == ' ';
    const char end = line.size() == 12 ? ' ' : line[12];
    if (!version || status < 100 || (end != ' ' && end != '\r' && end != '\n')) return std::nullopt;
    return status;
}

// What the lines mean, kept apart from what Response remembers of them.
struct Model {
    std::size_t lines_bytes = 0;
    std::size_t body_bytes = 0;
    std::string body;
    int status = 0;
    bool interim = false;  // in an interim answer's headers
    bool stopped = false;

    void line(std::string_view text) {
        lines_bytes += text.size();
        if (lines_bytes > Response::most_header_bytes) {
            stopped = true;
        } else if (status == 0 && !interim) {
            const auto found = expected_status(text);
            stopped = !found;
            interim = found.value_or(200) < 200;
            if (found.value_or(0) >= 200) status = *found;
        } else if (interim && (text == "\r\n" || text == "\n")) {
            interim = false;
        }
    }
    void bytes(std::string_view more) {
        body_bytes += more.size();
        if (status != 0) body += more;
        stopped = status == 0 || body_bytes > Response::most_body_bytes;
    }
};

std::string repeated(std::string_view piece) {
    if (!piece.starts_with("~~")) return std::string(piece.substr(1));
    std::string bytes;
    for (int count = 0; count < 32; ++count) bytes += piece.substr(2);
    return bytes;
}

void feed(Response& response, Model& model, std::string_view piece) {
    Response::Verdict verdict{};
    if (piece.starts_with('~')) {
        const auto bytes = repeated(piece);
        model.bytes(bytes);
        verdict = response.take_body(bytes);
    } else {
        model.line(piece);
        verdict = response.take_line(piece);
    }
    must((verdict == Response::Verdict::stop) == model.stopped, "it stops where it must, and nowhere else", piece);
}

void check(std::string_view input) {
    Response response;
    Model model;
    while (!input.empty() && !model.stopped) {
        const auto piece = input.substr(0, input.find('\n') + 1 == 0 ? input.size() : input.find('\n') + 1);
        input.remove_prefix(piece.size());
        must(status_of(piece) == expected_status(piece), "a status line is read strictly", piece);
        feed(response, model, piece);
    }
    const auto answer = response.answered(now);
    must(answer.has_value() == (model.status != 0), "a final status line is an answer, nothing else is");
    must(!response.answered(now), "an answer is given once");
    if (!answer) return;
    must(answer->status == model.status && answer->status >= 200 && answer->status <= 999, "the status is the line's");
    must(answer->reason == model.body.substr(0, Response::most_reason_bytes), "the reason is the body's beginning");
    must(!answer->retry_after || (answer->retry_after->count() >= 0 && *answer->retry_after <= longest_retry_after),
         "Retry-After is within its bounds");
}

}  // namespace
}  // namespace claimq::http

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    claimq::http::check(claimq::fuzz::text_of(data, size));
    return 0;
}
