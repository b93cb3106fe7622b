#include "store/retention.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>
#include <utility>

#include "store/store_error.hpp"

namespace claimq::store {

namespace {

// How many rows at a time: about 1 ms of a turn. Bodies may be large, and their pages are overwritten with zeros.
struct Share {
    std::string_view table;
    int rows;
};
constexpr std::array kShares{Share{"processed", 200}, Share{"dead_letters", 200}, Share{"other_bodies", 5}};
constexpr Milliseconds kWhileThereAreMore{100};    // 2,000 rows a second: more than a busy consumer adds
constexpr Milliseconds kWhenThereAreNone{10'000};  // what is old can wait
constexpr std::chrono::days kForEver{36'500};      // keeps the year of the cutoff at four digits

Statement newest_of(sqlite3* db, std::string_view table) {
    return {db, std::string("SELECT at FROM ").append(table).append(" ORDER BY rowid DESC LIMIT 1")};
}

// Only among the oldest by rowid: where the clock once jumped, a young row there keeps those behind it longer.
Statement delete_oldest_of(sqlite3* db, std::string_view table) {
    return {db, std::string("DELETE FROM ")
                    .append(table)
                    .append(" WHERE at < ?1 AND rowid IN (SELECT rowid FROM ")
                    .append(table)
                    .append(" ORDER BY rowid LIMIT ?2)")};
}

}  // namespace

Retention::Retention(sqlite3* db, std::optional<std::chrono::days> days, WallClock wall_clock)
    : db_(db), days_(days), wall_clock_(std::move(wall_clock)) {
    if (!days_) return;
    assert(days_->count() > 0);
    for (const auto& [table, rows] : kShares)
        tables_.push_back({newest_of(db, table), delete_oldest_of(db, table), rows});
    const std::string newest = newest_record();
    if (!newest.empty() && newest < cutoff()) {
        throw StoreFault("even its newest record (" + newest + ") is older than --retention " +
                         std::to_string(days_->count()) + ": is this machine's clock right? Nothing was deleted");
    }
    due_ = TimePoint{};
}

std::string Retention::cutoff() const { return utc_text(read(wall_clock_) - std::min(*days_, kForEver)); }

std::string Retention::newest_record() const {
    std::string newest;
    for (const Table& table : tables_) {
        Run run(table.newest);
        if (run.row()) newest = std::max(newest, std::string(run.text_at(0)));
    }
    return newest;
}

void Retention::delete_some(TimePoint now) {
    due_ = now + kWhenThereAreNone;
    const std::string older_than = cutoff();
    if (newest_record() < older_than) return;  // the clock has jumped during the run, or nothing comes any more
    for (const Table& table : tables_) {
        Run(table.delete_oldest).text(1, older_than).integer(2, table.rows).done();
        if (sqlite3_changes(db_) == table.rows) due_ = now + kWhileThereAreMore;
    }
}

}  // namespace claimq::store
