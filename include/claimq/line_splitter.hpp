// Cuts a stream of bytes into lines, LF or CRLF being no part of them. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace claimq {

struct Line {
    std::uint64_t number = 0;  // from 1; blank lines count
    std::string text;          // empty when too long
    bool too_long = false;
};

class LineSplitter {
public:
    explicit LineSplitter(std::size_t longest) : longest_(longest) {}

    void feed(std::string_view bytes);  // only after next() has returned nothing
    void end();                         // the last line may have no line end

    // The next line that is not blank. Of one that is too long only so much is held in memory as the limit says.
    [[nodiscard]] std::optional<Line> next();

private:
    [[nodiscard]] std::optional<Line> cut(std::size_t length);

    std::size_t longest_;
    std::string held_;
    std::size_t at_ = 0;       // what is before it has been returned
    std::size_t scanned_ = 0;  // up to here there is no line end
    std::uint64_t number_ = 0;
    bool skipping_ = false;  // in a line that is too long
    bool ended_ = false;
};

}  // namespace claimq
