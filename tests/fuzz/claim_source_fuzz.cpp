// publish's input: the same claims and refusals from a file, and from a pipe whatever the chunks; none is left out, and
// a body is the file's or the line's bytes.
#include "publish/claim_source.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "claimq/claim.hpp"
#include "lines.hpp"
#include "property.hpp"

namespace claimq::publish {
namespace {

using fuzz::must;
using Words = std::vector<std::string>;

constexpr std::size_t most_bytes = 32'768;  // a pipe holds 64 KiB

std::string words_of(const std::variant<ClaimId, NoClaim>& id, std::string_view body, std::uint64_t line) {
    const auto place = std::to_string(line) + ": ";
    if (const auto* claim = std::get_if<ClaimId>(&id)) return place + claim->guid + " " + std::string(body);
    return place + std::get<NoClaim>(id).reason;
}

std::string words_of(const SourceItem& item) {
    if (const auto* claim = std::get_if<OutgoingClaim>(&item))
        return words_of(ClaimId{claim->guid}, claim->body, claim->origin.line);
    const auto& bad = std::get<BadInput>(item);
    must(bad.status == ExitStatus::data, "what can be read is at worst no claim", bad.reason);
    return words_of(NoClaim{bad.reason}, {}, bad.origin.line);
}

Words expected(std::string_view text, Framing framing) {
    if (framing == Framing::by_name) return {words_of(claim_id(text), text, 0)};
    Words words;
    for (const auto& line : fuzz::lines_of(text, longest_line))
        words.push_back(words_of(claim_id(line.text), line.text, line.number));
    return words;
}

// False at the end, true when there is nothing to read yet.
bool take(ClaimSource& source, Words& words) {
    while (true) {
        const auto item = source.next();
        if (std::holds_alternative<End>(item)) return false;
        if (std::holds_alternative<NotYet>(item)) return true;
        words.push_back(words_of(item));
    }
}

void write_all(int fd, std::string_view text) {
    must(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "the test can write its input");
}

Words from_file(std::string_view text, Framing framing) {
    const int fd = ::memfd_create("claims", MFD_CLOEXEC);
    write_all(fd, text);
    ClaimSource source({"/proc/self/fd/" + std::to_string(fd)}, framing);
    Words words;
    must(!take(source, words), "a file is read to its end");
    ::close(fd);
    return words;
}

Words from_pipe(std::string_view text, Framing framing, std::size_t chunk) {
    int ends[2];
    must(::pipe(ends) == 0, "the test has a pipe");
    must(::dup2(ends[0], STDIN_FILENO) == STDIN_FILENO, "the test has a standard input");
    ::close(ends[0]);
    ClaimSource source({"-"}, framing);
    Words words;
    for (std::size_t at = 0; at < text.size(); at += chunk) {
        write_all(ends[1], text.substr(at, chunk));
        must(take(source, words), "an open pipe has no end");
    }
    ::close(ends[1]);
    must(!take(source, words), "a closed pipe has an end");
    return words;
}

}  // namespace
}  // namespace claimq::publish

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace claimq::publish;
    claimq::fuzz::Choices choices(claimq::fuzz::text_of(data, size));
    const auto framing = (choices.byte() & 1u) != 0 ? Framing::ndjson : Framing::by_name;  // "1", "0"
    const std::size_t chunk = choices.byte() * 16u + 1u;
    const auto text = choices.text(most_bytes);
    const auto wanted = expected(text, framing);
    claimq::fuzz::must(from_file(text, framing) == wanted, "a file gives its claims");
    claimq::fuzz::must(from_pipe(text, framing, chunk) == wanted, "a pipe gives its claims");
    return 0;
}
