// A moment of the wall clock as text: 2026-07-31T08:05:09.042Z. Fixed width, so that later sorts after earlier.
#pragma once
#include <chrono>
#include <functional>
#include <string>

namespace claimq::store {

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;
using WallClock = std::function<std::chrono::system_clock::time_point()>;

[[nodiscard]] std::string utc_text(WallTime);
[[nodiscard]] WallTime read(const WallClock&);

}  // namespace claimq::store
