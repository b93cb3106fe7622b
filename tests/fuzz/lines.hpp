// A line splitter that is easy to believe, to hold the real one against: it has all of the text at once.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "claimq/line_splitter.hpp"

namespace claimq::fuzz {

[[nodiscard]] inline std::vector<Line> lines_of(std::string_view text, std::size_t longest) {
    std::vector<Line> lines;
    for (std::uint64_t number = 1; !text.empty(); ++number) {
        const auto end = text.find('\n');
        auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.size() > longest)
            lines.push_back({number, {}, true});
        else if (line.find_first_not_of(" \t\r") != std::string_view::npos)
            lines.push_back({number, std::string(line), false});
    }
    return lines;
}

}  // namespace claimq::fuzz
