// The claims that publish was given, one after the other: files, standard input, one claim a line.
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "claimq/confirm_window.hpp"
#include "claimq/exit_status.hpp"
#include "claimq/line_splitter.hpp"

namespace claimq::publish {

// RabbitMQ can be configured for no larger message (rabbit.schema: 536870912).
inline constexpr std::size_t largest_file = 536'870'912;
inline constexpr std::size_t longest_line = 134'217'728;

enum class Framing {
    by_name,
    ndjson
};  // by_name: .ndjson and .jsonl are one claim a line, the rest is one claim a file

// No claim: a file that cannot be read (no_input), or what it holds is none (data).
struct BadInput {
    Origin origin;
    ExitStatus status = ExitStatus::data;
    std::string reason;
};
struct NotYet {  // a pipe or terminal has nothing to read at the moment
    int fd = -1;
};
struct End {};
using SourceItem = std::variant<OutgoingClaim, BadInput, NotYet, End>;

class ClaimSource {
public:
    // "-" is standard input.
    ClaimSource(std::vector<std::string> files, Framing framing)
        : files_(files.begin(), files.end()), framing_(framing) {}
    ClaimSource(const ClaimSource&) = delete;
    ClaimSource& operator=(const ClaimSource&) = delete;
    ~ClaimSource() { close_file(); }

    // Checked by the rules of a claim. Does not wait for a pipe; reads a regular file through.
    [[nodiscard]] SourceItem next();

private:
    enum class Chunk { some, end, not_yet };
    [[nodiscard]] int open_next();
    [[nodiscard]] Chunk read_chunk(std::string& into);
    [[nodiscard]] SourceItem next_line();
    [[nodiscard]] SourceItem whole_file();
    [[nodiscard]] SourceItem failed(ExitStatus status, std::string reason);
    void close_file();

    std::deque<std::string> files_;
    Framing framing_;
    int fd_ = -1;
    bool ended_ = false;  // all of it is in lines_
    bool waits_ = false;  // fd_ is no regular file: poll it before reading
    std::string name_;
    std::string buffer_;                 // what is read goes through it, so that a body is no larger than its bytes
    std::string text_;                   // of a file that is one claim
    std::optional<LineSplitter> lines_;  // of one that is many
};

}  // namespace claimq::publish
