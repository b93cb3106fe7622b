#include "cli/poll_waiter.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace claimq::cli {

void PollWaiter::wait(std::span<const Watch> watches) {
    constexpr std::int64_t longest = 3'600'000;  // an hour: poll counts in int
    std::array<pollfd, 8> entries{};
    assert(watches.size() <= entries.size());
    nfds_t count = 0;
    auto due = TimePoint::max();
    for (const auto& watch : watches) {
        if (watch.fd >= 0) entries[count++] = {watch.fd, watch.events, 0};
        due = std::min(due, watch.due);
    }
    const auto now = Clock::now();
    // A `due` long past must not be subtracted from: TimePoint::min() is "at once".
    const auto left = due <= now ? Clock::duration::zero() : due - now;
    const auto timeout = std::min<std::int64_t>(std::chrono::ceil<Milliseconds>(left).count(), longest);
    poll(entries.data(), count, static_cast<int>(timeout));  // a signal ends it early, which is as good as a turn
}

}  // namespace claimq::cli
