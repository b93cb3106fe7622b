#include "store_fixture.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace claimq::store_test {

TemporaryFolder::TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "claimq-store-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = std::filesystem::canonical(name);
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

OtherConnection::OtherConnection(const std::filesystem::path& path) {
    sqlite3* db = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    db_.reset(db);
    if (code != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db));
}

void OtherConnection::run(const std::string& sql) {
    if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        throw std::runtime_error(sql + ": " + sqlite3_errmsg(db_.get()));
}

std::vector<std::string> OtherConnection::column(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
        throw std::runtime_error(sql + ": " + sqlite3_errmsg(db_.get()));
    std::vector<std::string> values;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, 0));
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, 0));
        values.emplace_back(bytes == nullptr ? "" : bytes, size);
    }
    if (sqlite3_finalize(statement) != SQLITE_OK) throw std::runtime_error(sql + ": " + sqlite3_errmsg(db_.get()));
    return values;
}

std::string OtherConnection::value(const std::string& sql) {
    const auto values = column(sql);
    if (values.size() != 1) throw std::runtime_error(sql + ": " + std::to_string(values.size()) + " rows");
    return values[0];
}

std::string word(const InboxEvent& event) {
    struct Word {
        std::string operator()(const inbox_event::Admitted& admitted) const {
            const auto ticket = std::to_string(admitted.ticket);
            switch (admitted.verdict) {
                case Admission::fresh: return ticket + " fresh";
                case Admission::done: return ticket + " done";
                case Admission::done_other_body: return ticket + " done, other body";
                case Admission::held: return ticket + " held";
            }
            return "?";
        }
        std::string operator()(const inbox_event::Recorded& recorded) const {
            return std::to_string(recorded.ticket) + " recorded";
        }
        std::string operator()(const inbox_event::Down&) const { return "down"; }
        std::string operator()(const inbox_event::Up&) const { return "up"; }
        std::string operator()(const inbox_event::Broken&) const { return "broken"; }
    };
    return std::visit(Word{}, event);
}

Words words(const std::vector<InboxEvent>& events) {
    Words all;
    std::ranges::transform(events, std::back_inserter(all), word);
    return all;
}

pid_t start_child(const std::function<int()>& child) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("fork");
    if (pid > 0) return pid;
    int status = 1;
    try {
        status = child();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "in the child: %s\n", error.what());
    }
    _exit(status);
}

int status_of(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool give_up_root() {
    constexpr unsigned nobody = 65534;
    return geteuid() != 0 || (setresgid(nobody, nobody, nobody) == 0 && setresuid(nobody, nobody, nobody) == 0);
}

FileSizeLimit::FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);  // the write fails instead
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
}

FileSizeLimit::~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

unsigned mode_of(const std::filesystem::path& path) {
    struct stat found {};
    if (stat(path.c_str(), &found) != 0) throw std::runtime_error("cannot stat " + path.string());
    return found.st_mode & 07777U;
}

Words names_in(const std::filesystem::path& folder) {
    Words names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
}

std::string refusal(const StoreOptions& options) {
    try {
        (void)open_sqlite_inbox(options);
        return "";
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.status(), ExitStatus::store);
        return failure.what();
    }
}

}  // namespace claimq::store_test
