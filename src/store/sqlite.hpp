// SQLite's handles as C++ values: a connection, a prepared statement, one run of it, a transaction.
#pragma once
#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace claimq::store {

struct CloseSqlite {
    void operator()(sqlite3* db) const noexcept { sqlite3_close(db); }
};
using SqlitePtr = std::unique_ptr<sqlite3, CloseSqlite>;

struct FinalizeStatement {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using StatementPtr = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// An existing file, for reading and writing. Runs no statement, so it changes no byte of whatever is there.
[[nodiscard]] SqlitePtr open_connection(const std::filesystem::path&);

// The one place that turns SQLite's codes into ours: returns for OK, ROW and DONE, else throws StoreBusy or StoreFault.
void check(sqlite3*, int code);

class Statement {
public:
    Statement(sqlite3*, std::string_view sql);
    [[nodiscard]] sqlite3_stmt* get() const noexcept { return statement_.get(); }

private:
    StatementPtr statement_;
};

// One run of a statement. Its end resets the statement: one that is not reset keeps its read snapshot open, and a
// claim committed elsewhere meanwhile would not be seen. What is bound is not copied, it must outlive the run.
class Run {
public:
    explicit Run(const Statement& statement) noexcept : statement_(statement.get()) {}
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    Run& text(int parameter, std::string_view);  // with its length: ids may hold NUL bytes
    Run& blob(int parameter, std::span<const std::byte>);
    Run& integer(int parameter, std::int64_t);

    [[nodiscard]] bool row();  // steps; true: there is a row
    void done();               // steps a statement that gives no rows

    [[nodiscard]] std::int64_t integer_at(int column) const;
    [[nodiscard]] std::string_view text_at(int column) const;  // until the next step
    [[nodiscard]] std::span<const std::byte> blob_at(int column) const;

private:
    [[nodiscard]] sqlite3* connection() const noexcept { return sqlite3_db_handle(statement_); }
    sqlite3_stmt* statement_;
};

// The statements that begin and end a transaction, prepared once.
class TransactionControl {
public:
    explicit TransactionControl(sqlite3*);

private:
    friend class Transaction;
    sqlite3* db_;
    Statement begin_write_, begin_read_, commit_, rollback_;
};

enum class Access {
    read,   // one snapshot, from the first SELECT on
    write,  // BEGIN IMMEDIATE: a transaction that reads first and writes later fails with SQLITE_BUSY_SNAPSHOT when
            // another wrote in between, and waiting can't mend that (https://sqlite.org/isolation.html)
};

// Rolled back unless committed.
class Transaction {
public:
    Transaction(const TransactionControl&, Access);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    void commit();  // on disk on return, with synchronous=FULL

private:
    const TransactionControl& control_;
};

}  // namespace claimq::store
