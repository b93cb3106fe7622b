// The line splitter: the same lines as from the whole text at once, whatever the chunks it comes in; and where nothing
// is left out or cut off, joining them gives the text.
#include "lines.hpp"

#include <algorithm>
#include <string>

#include "property.hpp"

namespace claimq {
namespace {

using fuzz::must;

bool same(const std::vector<Line>& one, const std::vector<Line>& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const Line& a, const Line& b) {
        return a.number == b.number && a.text == b.text && a.too_long == b.too_long;
    });
}

std::vector<Line> in_chunks(std::string_view text, std::size_t longest, std::size_t chunk) {
    LineSplitter splitter(longest);
    std::vector<Line> lines;
    const auto take = [&] {
        while (auto line = splitter.next()) lines.push_back(*std::move(line));
    };
    for (std::size_t at = 0; at < text.size(); at += chunk) {
        splitter.feed(text.substr(at, chunk));
        take();
    }
    splitter.end();
    take();
    must(!splitter.next(), "the end stays the end");
    return lines;
}

std::string joined(const std::vector<Line>& lines) {
    std::string text;
    for (const auto& line : lines) text += line.text + "\n";
    return text;
}

void check(std::string_view text, std::size_t longest, std::size_t chunk) {
    const auto lines = in_chunks(text, longest, chunk);
    must(same(lines, fuzz::lines_of(text, longest)), "the lines are those of the whole text");
    for (const auto& line : lines) {
        must(line.text.size() <= longest, "no line is longer than allowed", line.text);
        must(line.text.find('\n') == std::string::npos, "no line holds a line end", line.text);
        must(line.too_long == line.text.empty(), "a line is blank only when it was too long");
    }
    const bool whole = text.ends_with('\n') && text.find('\r') == std::string::npos &&
                       std::ranges::count(text, '\n') == std::ssize(lines) &&
                       std::ranges::none_of(lines, &Line::too_long);
    if (whole) must(joined(lines) == text, "joined, the lines are the text");
}

}  // namespace
}  // namespace claimq

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    claimq::fuzz::Choices choices(claimq::fuzz::text_of(data, size));
    const std::size_t longest = choices.byte() % 64;
    const std::size_t chunk = choices.byte() % 16 + 1u;
    const auto text = choices.rest();
    claimq::check(text, longest, chunk);
    claimq::check(text, longest, text.size() + 1);
    return 0;
}
