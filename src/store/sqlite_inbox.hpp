// The Inbox on SQLite: processed ids in a table, ids in flight as locked bytes of a file beside it.
// The order is lock → is it processed? → call → commit → unlock, so two consumers on one store cannot both see an id as
// new. What is read can be taken for decided, since only the holder of an id's lock ever records that id.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "claimq/inbox.hpp"

namespace claimq {

struct StoreOptions {
    std::filesystem::path path;
    std::optional<std::chrono::days> retention{};  // more than none; absent: for ever
    // For the records' dates and for retention; all waiting is on turn()'s monotonic clock.
    std::function<std::chrono::system_clock::time_point()> wall_clock = std::chrono::system_clock::now;
    // How long a record may wait, while other claims are in hand, for more to share its commit.
    std::chrono::microseconds gather_at_most{1'000};
};

// Makes the file and its folders where they are missing, for the owner alone. Waits for others that are starting or at
// a commit, 10 s at most. Throws Failure{ExitStatus::store}, naming the file and the reason; a file that is no claimq
// store is left as it is.
[[nodiscard]] std::unique_ptr<Inbox> open_sqlite_inbox(const StoreOptions&);

}  // namespace claimq
