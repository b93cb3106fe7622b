#include "store/sqlite.hpp"

#include <cassert>
#include <cstring>
#include <string>

#include "store/store_error.hpp"

namespace claimq::store {

namespace {

std::string words_for(sqlite3* db, int code) {
    std::string words = db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db);
    const int primary = code & 0xff;
    const int system_error = db == nullptr ? 0 : sqlite3_system_errno(db);
    if ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_FULL) && system_error != 0) {
        words += std::string(" (") + std::strerror(system_error) + ")";
    }
    return words;
}

// SQLite takes a null pointer for the value NULL; an empty id or body is not NULL.
const char* not_null(const char* bytes) { return bytes == nullptr ? "" : bytes; }

}  // namespace

SqlitePtr open_connection(const std::filesystem::path& path) {
    // Absolute, since SQLite knows names with a meaning of their own (":memory:", "file:…?mode=…", the empty one).
    assert(path.is_absolute());
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &raw,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
    SqlitePtr db(raw);
    check(raw, code);
    return db;
}

void check(sqlite3* db, int code) {
    switch (code & 0xff) {
        case SQLITE_OK:
        case SQLITE_ROW:
        case SQLITE_DONE: return;
        case SQLITE_BUSY:
        case SQLITE_PROTOCOL:  // lost a race for the WAL's locks too often (https://sqlite.org/rescode.html#protocol)
            throw StoreBusy(words_for(db, code));
        default: throw StoreFault(words_for(db, code));
    }
}

Statement::Statement(sqlite3* db, std::string_view sql) {
    sqlite3_stmt* raw = nullptr;
    const int code =
        sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    statement_.reset(raw);
    check(db, code);
}

Run::~Run() {
    sqlite3_reset(statement_);  // repeats the code of the last step, which was thrown already
    sqlite3_clear_bindings(statement_);
}

Run& Run::text(int parameter, std::string_view value) {
    check(connection(),
          sqlite3_bind_text64(statement_, parameter, not_null(value.data()), value.size(), SQLITE_STATIC, SQLITE_UTF8));
    return *this;
}

Run& Run::blob(int parameter, std::span<const std::byte> value) {
    const auto* bytes = not_null(reinterpret_cast<const char*>(value.data()));
    check(connection(), sqlite3_bind_blob64(statement_, parameter, bytes, value.size(), SQLITE_STATIC));
    return *this;
}

Run& Run::integer(int parameter, std::int64_t value) {
    check(connection(), sqlite3_bind_int64(statement_, parameter, value));
    return *this;
}

bool Run::row() {
    const int code = sqlite3_step(statement_);
    check(connection(), code);
    return code == SQLITE_ROW;
}

void Run::done() {
    [[maybe_unused]] const bool has_row = row();
    assert(!has_row);
}

std::int64_t Run::integer_at(int column) const { return sqlite3_column_int64(statement_, column); }

std::string_view Run::text_at(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return {not_null(text), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::span<const std::byte> Run::blob_at(int column) const {
    const auto* blob = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
    return {blob, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

TransactionControl::TransactionControl(sqlite3* db)
    : db_(db),
      begin_write_(db, "BEGIN IMMEDIATE"),
      begin_read_(db, "BEGIN"),
      commit_(db, "COMMIT"),
      rollback_(db, "ROLLBACK") {}

Transaction::Transaction(const TransactionControl& control, Access access) : control_(control) {
    switch (access) {
        case Access::read: Run(control.begin_read_).done(); break;
        case Access::write: Run(control.begin_write_).done(); break;
    }
}

Transaction::~Transaction() {
    // SQLite has rolled back by itself after some errors (https://sqlite.org/lang_transaction.html, section 3).
    if (sqlite3_get_autocommit(control_.db_) != 0) return;
    sqlite3_step(control_.rollback_.get());
    sqlite3_reset(control_.rollback_.get());
}

void Transaction::commit() { Run(control_.commit_).done(); }

}  // namespace claimq::store
