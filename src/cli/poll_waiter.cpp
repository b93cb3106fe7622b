#include "cli/poll_waiter.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace claimq::cli {

void PollWaiter::wait(std::span<const Watch> watches) {
    constexpr std::chrono::nanoseconds longest = std::chrono::hours{1};
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
    const auto left =
        due <= now ? std::chrono::nanoseconds::zero() : std::min<std::chrono::nanoseconds>(due - now, longest);
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), (left - seconds).count()};
    ppoll(entries.data(), count, &timeout, nullptr);  // a signal ends it early, which is as good as a turn
}

}  // namespace claimq::cli
