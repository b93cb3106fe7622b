#include "claimq/retry_wait.hpp"

#include <algorithm>

namespace claimq {

Milliseconds retry_wait(Milliseconds option, std::optional<std::chrono::seconds> retry_after) {
    constexpr std::chrono::seconds most{30};
    if (option.count() == 0) return option;
    const auto asked = std::min(retry_after.value_or(std::chrono::seconds{0}), most);
    return std::min<Milliseconds>(std::max<Milliseconds>(option, asked), most);
}

std::optional<Ticket> RetryQueue::add(Ticket ticket, TimePoint due) {
    waiting_.push_back({ticket, due});
    if (waiting_.size() <= most_) return std::nullopt;
    const auto oldest = waiting_.front().ticket;
    waiting_.pop_front();
    return oldest;
}

std::vector<Ticket> RetryQueue::take_due(TimePoint now) {
    std::vector<Ticket> due;
    for (const auto& one : waiting_)
        if (one.due <= now) due.push_back(one.ticket);
    std::erase_if(waiting_, [now](const Waiting& one) { return one.due <= now; });
    return due;
}

TimePoint RetryQueue::next_due() const {
    const auto first = std::ranges::min_element(waiting_, {}, &Waiting::due);
    return first == waiting_.end() ? TimePoint::max() : first->due;
}

}  // namespace claimq
