// --retention DAYS: forgets records older than that, a few at a time.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "claimq/clock.hpp"
#include "store/sqlite.hpp"
#include "store/utc_text.hpp"

namespace claimq::store {

class Retention {
public:
    // Without `days`: for ever, and due() never comes. Throws StoreFault when even the newest record is older: then it
    // is the clock that is wrong, and all would be forgotten and called again.
    Retention(sqlite3*, std::optional<std::chrono::days>, WallClock);

    [[nodiscard]] TimePoint due() const noexcept { return due_; }

    // Within a write transaction: deletes some rows, and says when to come again.
    void delete_some(TimePoint now);

private:
    struct Table {
        Statement newest;
        Statement delete_oldest;
        int rows;
    };
    [[nodiscard]] std::string cutoff() const;
    [[nodiscard]] std::string newest_record() const;

    sqlite3* db_;
    std::optional<std::chrono::days> days_;
    WallClock wall_clock_;
    std::vector<Table> tables_;
    TimePoint due_ = TimePoint::max();
};

}  // namespace claimq::store
