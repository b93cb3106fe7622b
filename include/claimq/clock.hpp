// Time, and what a part of the program has to be woken for. All deadlines are on the monotonic clock.
#pragma once
#include <chrono>

namespace claimq {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Milliseconds = std::chrono::milliseconds;

// What the loop's one poll has to watch for a seam. May change from turn to turn: ask before every poll.
struct Watch {
    int fd = -1;                       // -1: nothing to watch
    short events = 0;                  // POLLIN, POLLOUT
    TimePoint due = TimePoint::max();  // call turn() by then, readable or not
};

}  // namespace claimq
