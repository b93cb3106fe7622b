// A store in a folder of its own, other hands on its file, and other processes.
#pragma once
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "claimq/failure.hpp"
#include "store/sqlite_inbox.hpp"

namespace claimq::store_test {

class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// Another program at the store's file, e.g. the sqlite3 shell.
class OtherConnection {
public:
    explicit OtherConnection(const std::filesystem::path&);
    void run(const std::string& sql);
    [[nodiscard]] std::vector<std::string> column(const std::string& sql);  // of all rows, the first column's bytes
    [[nodiscard]] std::string value(const std::string& sql);                // of the one row

private:
    struct Close {
        void operator()(sqlite3* db) const { sqlite3_close(db); }
    };
    std::unique_ptr<sqlite3, Close> db_;
};

// Events as words, so that a test reads like the conversation: "1 fresh", "2 held", "1 recorded", "down", "up",
// "broken".
using Words = std::vector<std::string>;
[[nodiscard]] std::string word(const InboxEvent&);
[[nodiscard]] Words words(const std::vector<InboxEvent>&);

// Runs `child` in a process of its own, which ends with what it returns, with 1 after an exception. The test's
// assertions count for nothing in there.
[[nodiscard]] pid_t start_child(const std::function<int()>& child);
[[nodiscard]] int status_of(pid_t child);  // waits for its end; 128 + n: killed by signal n

// As one who has no rights of root; false says that this could not be tried.
[[nodiscard]] bool give_up_root();

// No file of this process grows beyond `bytes` until the end of the scope: a full disk for whoever writes.
class FileSizeLimit {
public:
    explicit FileSizeLimit(rlim_t bytes);
    ~FileSizeLimit();
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;

private:
    rlimit before_{};
};

[[nodiscard]] std::string bytes_of(const std::filesystem::path&);
void write_file(const std::filesystem::path&, const std::string& bytes);
[[nodiscard]] unsigned mode_of(const std::filesystem::path&);
[[nodiscard]] Words names_in(const std::filesystem::path& folder);  // sorted

// The text of the Failure with status 74 that opening ends with; empty when it opens.
[[nodiscard]] std::string refusal(const StoreOptions&);

class StoreTest : public testing::Test {
protected:
    [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "processed.db"; }
    [[nodiscard]] std::unique_ptr<Inbox> open() const {
        return open_sqlite_inbox({.path = path(), .gather_at_most = {}});
    }
    [[nodiscard]] OtherConnection other() const { return OtherConnection(path()); }

    // A turn `after` the one before.
    Words turn(Inbox& inbox, Milliseconds after = Milliseconds{0}) {
        now_ += after;
        return words(inbox.turn(now_));
    }
    Words admit(Inbox& inbox, Ticket ticket, std::string_view id, std::string_view body = "body") {
        inbox.admit(ticket, id, body);
        return turn(inbox);
    }
    Words record(Inbox& inbox, Ticket ticket, Outcome outcome = Outcome::accepted, int status = 201) {
        inbox.record({ticket, outcome, status, "reason"});
        return turn(inbox);
    }
    void process(Inbox& inbox, Ticket ticket, std::string_view id, std::string_view body = "body") {
        ASSERT_EQ(admit(inbox, ticket, id, body), Words{std::to_string(ticket) + " fresh"});
        ASSERT_EQ(record(inbox, ticket), Words{std::to_string(ticket) + " recorded"});
    }

    TemporaryFolder folder_;
    TimePoint now_ = TimePoint{} + std::chrono::hours{1000};
};

}  // namespace claimq::store_test
