#include "claimq/line_splitter.hpp"

namespace claimq {

void LineSplitter::feed(std::string_view bytes) {
    held_.erase(0, at_);
    scanned_ -= at_;
    at_ = 0;
    held_ += bytes;
}

void LineSplitter::end() { ended_ = true; }

std::optional<Line> LineSplitter::next() {
    while (true) {
        const auto line_end = held_.find('\n', scanned_);
        if (line_end != std::string::npos) {
            auto line = cut(line_end - at_);
            at_ = scanned_ = line_end + 1;
            if (line) return line;
            continue;
        }
        scanned_ = held_.size();
        if (scanned_ - at_ > longest_ + 1) {  // one more: a CR may still turn out to belong to the line end
            skipping_ = true;
            at_ = scanned_;
        }
        if (!ended_ || (at_ == held_.size() && !skipping_)) return std::nullopt;
        auto line = cut(held_.size() - at_);
        at_ = held_.size();
        return line;
    }
}

std::optional<Line> LineSplitter::cut(std::size_t length) {
    ++number_;
    const bool was_too_long = skipping_;
    skipping_ = false;
    std::string_view text = std::string_view(held_).substr(at_, length);
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (was_too_long || text.size() > longest_) return Line{number_, {}, true};
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
    return Line{number_, std::string(text), false};
}

}  // namespace claimq
