#include "store/store_opening.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>

#include "store/private_file.hpp"
#include "store/store_error.hpp"
#include "store/store_schema.hpp"

namespace claimq::store {

namespace {

std::int64_t read_number(sqlite3* db, std::string_view sql) {
    const Statement statement(db, sql);
    Run run(statement);
    return run.row() ? run.integer_at(0) : 0;
}

void execute(sqlite3* db, const std::string& sql) {
    check(db, sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr));
}

void refuse_other_store(std::int64_t application_id, std::int64_t version) {
    if (application_id != kApplicationId) throw StoreFault("is not a claimq store, but another SQLite database");
    if (version != kSchemaVersion) {
        throw StoreFault("has version " + std::to_string(version) +
                         " of the store's format; this claimq knows version " + std::to_string(kSchemaVersion));
    }
}

std::int64_t big_endian_32(const unsigned char* bytes) {
    return std::int64_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

// Reads the file's header as bytes, through SQLite's own descriptor: the first SELECT would already take locks, make a
// -shm file and play back a journal that another program has left. An empty file is a new store. (Where a field is:
// https://sqlite.org/fileformat2.html, section 1.3.)
void refuse_foreign_header(sqlite3* db, const std::filesystem::path& path) {
    if (std::filesystem::file_size(path) == 0) return;  // not SQLite's xFileSize, which calls one byte none
    constexpr std::string_view magic("SQLite format 3\0", 16);
    std::array<unsigned char, 100> header{};
    sqlite3_file* file = nullptr;
    check(db, sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file));
    assert(file != nullptr && file->pMethods != nullptr);
    const int code = file->pMethods->xRead(file, header.data(), static_cast<int>(header.size()), 0);
    const bool is_short = code == SQLITE_IOERR_SHORT_READ;
    if (!is_short) check(db, code);
    if (is_short || !std::equal(magic.begin(), magic.end(), header.begin()))
        throw StoreFault("is not a claimq store, and no SQLite database");
    refuse_other_store(big_endian_32(&header[68]), big_endian_32(&header[60]));
}

// Under the write lock, so of two consumers that start on a new store one makes it and the other finds it. Made before
// WAL is switched on: so its marks are in the file itself from the first byte on, not in a WAL.
void make_or_recognize(sqlite3* db) {
    const TransactionControl control(db);
    Transaction transaction(control, Access::write);
    const auto application_id = read_number(db, "PRAGMA application_id");
    const auto version = read_number(db, "PRAGMA user_version");
    const bool is_new =
        application_id == 0 && version == 0 && read_number(db, "SELECT count(*) FROM sqlite_schema") == 0;
    if (is_new) {
        execute(db, std::string(kSchema));
    } else {
        refuse_other_store(application_id, version);
    }
    transaction.commit();
}

void switch_to_wal(sqlite3* db) {
    const Statement statement(db, "PRAGMA journal_mode = WAL");
    Run run(statement);
    if (!run.row() || run.text_at(0) != "wal") throw StoreFault("cannot be switched to WAL mode on this file system");
}

// Writes a value that is there already: a page goes through the WAL and to the disk all the same.
void prove_it_works(sqlite3* db) {
    const TransactionControl control(db);
    Transaction transaction(control, Access::write);
    execute(db, "PRAGMA user_version = " + std::to_string(kSchemaVersion));
    transaction.commit();
}

void bring_up(sqlite3* db) {
    execute(db, "PRAGMA synchronous = FULL");  // the default depends on how SQLite was built
    execute(db, "PRAGMA cache_size = -512");   // KiB: the pages are in the system's cache all the same
    make_or_recognize(db);
    switch_to_wal(db);
    prove_it_works(db);
}

// Not sqlite3_busy_timeout(): SQLite does not ask its busy handler where waiting might deadlock, and the switch to WAL
// is such a place (https://sqlite.org/c3ref/busy_handler.html); eight consumers that start at once meet it.
void keep_trying(sqlite3* db, const Patience& patience) {
    const TimePoint give_up_at = Clock::now() + patience.total;
    while (true) {
        try {
            return bring_up(db);
        } catch (const StoreBusy&) {
            if (Clock::now() >= give_up_at) throw;
        }
        patience.pause(Milliseconds{10});
    }
}

}  // namespace

void set_on_close(sqlite3* db, OnClose on_close) noexcept {
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on_close == OnClose::leave ? 1 : 0, nullptr);
}

SqlitePtr open_store(const std::filesystem::path& path, const Patience& patience) {
    make_private_file(path);
    SqlitePtr db = open_connection(path);
    set_on_close(db.get(), OnClose::leave);
    // SQLite falls back to reading where it may not write.
    if (sqlite3_db_readonly(db.get(), "main") != 0) throw StoreFault("is read-only");
    refuse_foreign_header(db.get(), path);
    keep_trying(db.get(), patience);
    set_on_close(db.get(), OnClose::tidy_up);
    return db;
}

}  // namespace claimq::store
