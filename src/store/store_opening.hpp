// Opens the store's file: refuses what is no claimq store before a byte is written, makes a new one, and proves with a
// durable write that it works.
#pragma once
#include <filesystem>
#include <functional>

#include "claimq/clock.hpp"
#include "store/sqlite.hpp"

namespace claimq::store {

// For other consumers that are starting, or are at a commit. The only place where the store waits.
struct Patience {
    Milliseconds total{10'000};
    std::function<void(Milliseconds)> pause;  // sleeps
};

// In WAL mode, synchronous=FULL, never waiting for a lock. Throws StoreBusy when the patience is over, or StoreFault.
[[nodiscard]] SqlitePtr open_store(const std::filesystem::path&, const Patience&);

// Closing would tidy up: copy the WAL into the file and delete it. With `leave` it touches nothing, the next opening
// does it; for a file that is not ours, or is no longer.
enum class OnClose { tidy_up, leave };
void set_on_close(sqlite3*, OnClose) noexcept;

}  // namespace claimq::store
