#include "store/sqlite_inbox.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "claimq/failure.hpp"
#include "store/admissions.hpp"
#include "store/busy_spell.hpp"
#include "store/claim_tables.hpp"
#include "store/claims_in_hand.hpp"
#include "store/gathering.hpp"
#include "store/pending_writes.hpp"
#include "store/retention.hpp"
#include "store/sqlite.hpp"
#include "store/store_error.hpp"
#include "store/store_opening.hpp"
#include "store/watched_files.hpp"

namespace claimq {

namespace store {

namespace {

class SqliteInbox final : public Inbox {
public:
    SqliteInbox(SqlitePtr, const std::filesystem::path&, const StoreOptions&);

    void admit(Ticket, std::string_view id, std::string_view body) override;
    void record(Record) override;
    void release(Ticket) override;
    [[nodiscard]] std::vector<InboxEvent> turn(TimePoint now) override;
    [[nodiscard]] Watch watch() const override;

private:
    [[nodiscard]] TimePoint commit_due() const;
    [[nodiscard]] bool due(TimePoint now) const;
    void work(TimePoint now);
    [[nodiscard]] bool has_to_commit(TimePoint now) const;
    void commit(TimePoint now);

    template <typename Step>
    void unless_busy(TimePoint now, Step);
    void store_is_busy(TimePoint now, const std::string& reason);
    void break_for_good(const std::string& reason);

    SqlitePtr db_;
    std::string path_;  // as SQLite uses it: absolute, symbolic links resolved
    ClaimTables tables_;
    Retention retention_;
    ClaimsInHand in_hand_;
    PendingWrites pending_;
    Gathering gathering_;
    Admissions admissions_;
    WatchedFiles files_;
    BusySpell spell_;
    std::vector<InboxEvent> events_;
    enum class State { usable, broken } state_ = State::usable;
};

SqliteInbox::SqliteInbox(SqlitePtr db, const std::filesystem::path& path, const StoreOptions& options)
    : db_(std::move(db)),
      path_(sqlite3_db_filename(db_.get(), "main")),
      tables_(db_.get()),
      retention_(db_.get(), options.retention, options.wall_clock),
      in_hand_(path_ + "-inflight"),
      pending_(db_.get(), tables_, in_hand_, options.wall_clock),
      gathering_(options.gather_at_most),
      admissions_(db_.get(), tables_, in_hand_, pending_) {
    files_.add(path);  // as the user names it: a link that leads elsewhere now has swapped the store, too
    // The -wal and the -shm file are there, and the same ones, for as long as one connection is open.
    for (const char* suffix : {"-wal", "-shm", "-inflight"}) files_.add(path_ + suffix);
    int moved = 0;  // before it was looked at
    check(db_.get(), sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved));
    if (moved != 0) throw StoreFault("was deleted or replaced");
}

void SqliteInbox::admit(Ticket ticket, std::string_view id, std::string_view body) { in_hand_.add(ticket, id, body); }

void SqliteInbox::record(Record record) {
    Claim* claim = in_hand_.find(record.ticket);
    assert(claim != nullptr && claim->stage == Stage::fresh);
    claim->stage = Stage::recording;
    pending_.add(std::move(record));
}

void SqliteInbox::release(Ticket ticket) {
    const Claim* claim = in_hand_.find(ticket);
    if (claim == nullptr) return;
    switch (claim->stage) {
        case Stage::recording: return;  // what became of it is a fact, and stays to be recorded
        case Stage::keeping_body: pending_.drop_other_body(ticket); break;
        case Stage::asked:
        case Stage::told_held:
        case Stage::fresh: in_hand_.leave_queue(ticket); break;
    }
    in_hand_.forget(ticket);
}

std::vector<InboxEvent> SqliteInbox::turn(TimePoint now) {
    if (!pending_.empty()) gathering_.pending(now);
    try {
        if (due(now)) work(now);
    } catch (const StoreFault& fault) {
        break_for_good(fault.what());
    }
    return std::exchange(events_, {});
}

Watch SqliteInbox::watch() const {
    Watch watch;
    if (state_ == State::broken) return watch;
    if (spell_.active())
        watch.due = spell_.try_again_at();
    else
        watch.due = std::min({in_hand_.due(), retention_.due(), commit_due()});
    return watch;
}

TimePoint SqliteInbox::commit_due() const {
    if (pending_.empty()) return TimePoint::max();
    return gathering_.due(in_hand_.size() > pending_.size() ? Others::in_hand : Others::none);
}

bool SqliteInbox::due(TimePoint now) const {
    if (state_ == State::broken) return false;
    return now >= watch().due || (!spell_.down() && now >= in_hand_.due());
}

// Written before it is asked: what this turn records is seen by what this turn asks. While the store is down nothing is
// answered at all: no call may be started, and what is to be acked loses nothing by waiting.
void SqliteInbox::work(TimePoint now) {
    files_.check();
    if (has_to_commit(now)) unless_busy(now, [&] { commit(now); });
    if (state_ == State::usable && !spell_.down()) unless_busy(now, [&] { admissions_.ask(now, events_); });
}

// A spell of being busy ends only with a commit that worked, if need be of nothing: BEGIN IMMEDIATE proves that reading
// and writing are possible again.
bool SqliteInbox::has_to_commit(TimePoint now) const {
    return spell_.active() ? now >= spell_.try_again_at() : now >= std::min(commit_due(), retention_.due());
}

void SqliteInbox::commit(TimePoint now) {
    const auto began = Clock::now();
    pending_.commit(retention_, now);
    gathering_.committed(Clock::now() - began);
    if (spell_.works() == BusySpell::Was::down) events_.emplace_back(inbox_event::Up{});
    pending_.answer(events_);
}

template <typename Step>
void SqliteInbox::unless_busy(TimePoint now, Step step) {
    try {
        step();
    } catch (const StoreBusy& busy) {
        store_is_busy(now, busy.what());
    }
}

void SqliteInbox::store_is_busy(TimePoint now, const std::string& reason) {
    switch (spell_.busy(now)) {
        case BusySpell::Meaning::try_again:
        case BusySpell::Meaning::is_down: return;
        case BusySpell::Meaning::goes_down:
            events_.emplace_back(inbox_event::Down{"store '" + path_ + "' is busy: " + reason});
            return;
        case BusySpell::Meaning::gives_up:
            return break_for_good("has been busy for " +
                                  std::to_string(BusySpell::kGivesUpAfter / std::chrono::seconds{1}) + " s: " + reason);
    }
}

// The file is left for the next opening to tidy up: it may not even be ours any more.
void SqliteInbox::break_for_good(const std::string& reason) {
    state_ = State::broken;
    set_on_close(db_.get(), OnClose::leave);
    events_.emplace_back(inbox_event::Broken{"store '" + path_ + "': " + reason});
}

void sleep(Milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace

}  // namespace store

std::unique_ptr<Inbox> open_sqlite_inbox(const StoreOptions& options) {
    const auto failure = [&](const std::string& reason) {
        return Failure(ExitStatus::store, "store '" + options.path.string() + "': " + reason);
    };
    try {
        if (options.path.empty()) throw store::StoreFault("has no name");
        const auto path = std::filesystem::absolute(options.path);
        return std::make_unique<store::SqliteInbox>(store::open_store(path, {.pause = store::sleep}), path, options);
    } catch (const store::StoreBusy& busy) {
        throw failure(busy.what());
    } catch (const store::StoreFault& fault) {
        throw failure(fault.what());
    } catch (const std::filesystem::filesystem_error& error) {
        throw failure(error.code().message());
    }
}

}  // namespace claimq
