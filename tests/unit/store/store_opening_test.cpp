// What is opened, what is made, and what is refused and left as it is.
#include "store/store_opening.hpp"

#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/private_file.hpp"
#include "store/store_error.hpp"
#include "store_fixture.hpp"

namespace claimq::store_test {
namespace {

using store::Patience;
using store::StoreBusy;

class StoreOpening : public StoreTest {
protected:
    [[nodiscard]] std::string reason() const {
        const std::string text = refusal({.path = path()});
        const std::string start = "store '" + path().string() + "': ";
        EXPECT_EQ(text.substr(0, start.size()), start);
        return text.size() < start.size() ? text : text.substr(start.size());
    }
    // It is refused, and not a byte of the folder is changed.
    [[nodiscard]] std::string reason_with_all_left_as_it_is() const {
        const Words names = names_in(folder_.path());
        const std::string bytes = bytes_of(path());
        const unsigned mode = mode_of(path());
        std::string why = reason();
        EXPECT_EQ(names_in(folder_.path()), names);
        EXPECT_TRUE(bytes_of(path()) == bytes);
        EXPECT_EQ(mode_of(path()), mode);
        return why;
    }
};

// --- made ---

class StoreOpeningUnderUmask : public StoreOpening, public testing::WithParamInterface<mode_t> {};

TEST_P(StoreOpeningUnderUmask, MakesFoldersAndFilesForTheOwnerAlone) {
    const auto store = folder_.path() / "one" / "two" / "processed.db";
    const mode_t before = umask(GetParam());
    const auto inbox = open_sqlite_inbox({.path = store});
    umask(before);
    EXPECT_EQ(mode_of(folder_.path() / "one"), 0700U);
    EXPECT_EQ(mode_of(folder_.path() / "one" / "two"), 0700U);
    for (const char* suffix : {"", "-wal", "-shm", "-inflight"}) EXPECT_EQ(mode_of(store.string() + suffix), 0600U);
}

INSTANTIATE_TEST_SUITE_P(All, StoreOpeningUnderUmask, testing::Values(0, 022, 077, 0777));

TEST_F(StoreOpening, MarksTheFileAsAClaimqStore) {
    (void)open();
    const std::string bytes = bytes_of(path());
    EXPECT_EQ(bytes.substr(68, 4), "clmq");
    EXPECT_EQ(bytes.substr(60, 4), std::string("\0\0\0\1", 4));
    EXPECT_EQ(other().value("PRAGMA journal_mode"), "wal");
    EXPECT_EQ(other().value("PRAGMA integrity_check"), "ok");
}

TEST_F(StoreOpening, TakesAnEmptyFileForANewStore) {
    write_file(path(), "");
    const auto inbox = open();
    EXPECT_EQ(admit(*inbox, 1, "a"), Words{"1 fresh"});
}

TEST_F(StoreOpening, LeavesTheModeOfAFileThatIsThere) {
    (void)open();
    ASSERT_EQ(chmod(path().c_str(), 0640), 0);
    (void)open();
    EXPECT_EQ(mode_of(path()), 0640U);
}

TEST_F(StoreOpening, TakesARelativePath) {
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder_.path());
    const auto inbox = open_sqlite_inbox({.path = ":memory:"});
    std::filesystem::current_path(before);
    EXPECT_EQ(admit(*inbox, 1, "a"), Words{"1 fresh"});
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / ":memory:"));
}

TEST_F(StoreOpening, SwitchesAStoreThatWasCopiedOutOfWalModeBackToIt) {
    (void)open();
    EXPECT_EQ(other().value("PRAGMA journal_mode = DELETE"), "delete");
    const auto inbox = open();
    EXPECT_EQ(other().value("PRAGMA journal_mode"), "wal");
}

TEST_F(StoreOpening, FindsWhatAKilledConsumerLeftInItsWal) {
    ASSERT_EQ(status_of(start_child([&] {
                  const auto inbox = open();
                  process(*inbox, 1, "a");
                  return kill(getpid(), SIGKILL);
              })),
              128 + SIGKILL);
    EXPECT_GT(std::filesystem::file_size(path().string() + "-wal"), 0U);
    EXPECT_EQ(admit(*open(), 2, "a"), Words{"2 done"});
}

// --- refused ---

TEST_F(StoreOpening, RefusesAFolder) {
    std::filesystem::create_directory(path());
    EXPECT_EQ(reason(), "is a folder");
    EXPECT_EQ(names_in(folder_.path()), Words{"processed.db"});
}

TEST_F(StoreOpening, RefusesAPathThatNamesNoFile) {
    EXPECT_EQ(refusal({.path = folder_.path() / ""}), "store '" + (folder_.path() / "").string() + "': is a folder");
    EXPECT_EQ(refusal({.path = ""}), "store '': has no name");
}

TEST_F(StoreOpening, RefusesAPipeWithoutWaitingForItsOtherEnd) {
    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    EXPECT_EQ(reason(), "is not a regular file");
}

TEST_F(StoreOpening, RefusesALinkToNowhere) {
    std::filesystem::create_symlink(folder_.path() / "not mounted" / "processed.db", path());
    EXPECT_EQ(reason(), "is a link to a file that does not exist");
    EXPECT_EQ(names_in(folder_.path()), Words{"processed.db"});
}

TEST_F(StoreOpening, RefusesAFileInTheWayOfAFolder) {
    write_file(folder_.path() / "file", "");
    EXPECT_NE(refusal({.path = folder_.path() / "file" / "processed.db"}).find("Not a directory"), std::string::npos);
}

TEST_F(StoreOpening, RefusesASecondNameOfAStore) {
    (void)open();
    std::filesystem::create_hard_link(path(), folder_.path() / "second.db");
    EXPECT_EQ(reason_with_all_left_as_it_is(), "has another name (a hard link)");
}

TEST_F(StoreOpening, RefusesWhatIsNoDatabase) {
    for (const std::string& bytes : {std::string("x"), std::string(1, '\0'), std::string("SQLite format 3"),
                                     std::string(5000, 'x'), std::string(4096, '\0')}) {
        write_file(path(), bytes);
        EXPECT_EQ(reason_with_all_left_as_it_is(), "is not a claimq store, and no SQLite database");
    }
}

TEST_F(StoreOpening, RefusesAnotherDatabase) {
    other().run("CREATE TABLE processed(message_id TEXT PRIMARY KEY)");
    EXPECT_EQ(reason_with_all_left_as_it_is(), "is not a claimq store, but another SQLite database");
}

TEST_F(StoreOpening, RefusesAnotherDatabaseInUseAndLeavesItsWalAlone) {
    auto owner = other();
    owner.run("PRAGMA journal_mode = WAL; CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
    const std::string wal = bytes_of(path().string() + "-wal");
    EXPECT_EQ(reason_with_all_left_as_it_is(), "is not a claimq store, but another SQLite database");
    EXPECT_TRUE(bytes_of(path().string() + "-wal") == wal);
    owner.run("INSERT INTO theirs VALUES(2)");
    EXPECT_EQ(other().value("SELECT count(*) FROM theirs"), "2");
}

TEST_F(StoreOpening, LeavesTheJournalOfAnotherProgramThatCrashed) {
    ASSERT_EQ(status_of(start_child([&] {
                  auto owner = other();
                  owner.run("CREATE TABLE theirs(x); PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE");
                  for (int row = 0; row < 200; ++row) owner.run("INSERT INTO theirs VALUES(zeroblob(4000))");
                  return kill(getpid(), SIGKILL);
              })),
              128 + SIGKILL);
    const auto journal = path().string() + "-journal";
    const std::string bytes = bytes_of(journal);
    ASSERT_FALSE(bytes.empty());
    EXPECT_EQ(reason_with_all_left_as_it_is(), "is not a claimq store, but another SQLite database");
    EXPECT_TRUE(bytes_of(journal) == bytes);
}

TEST_F(StoreOpening, RefusesAStoreOfALaterRelease) {
    (void)open();
    other().run("PRAGMA user_version = 2");
    EXPECT_EQ(reason_with_all_left_as_it_is(), "has version 2 of the store's format; this claimq knows version 1");
}

TEST_F(StoreOpening, RefusesAStoreThatALaterReleaseHasInUse) {
    (void)open();
    auto later = other();
    later.run("PRAGMA user_version = 2");  // still in the WAL
    EXPECT_EQ(reason_with_all_left_as_it_is(), "has version 2 of the store's format; this claimq knows version 1");
}

TEST_F(StoreOpening, LeavesTheWalOfALaterReleaseThatWasKilled) {
    ASSERT_EQ(status_of(start_child([&] {
                  const auto inbox = open();
                  other().run("PRAGMA user_version = 2");
                  return kill(getpid(), SIGKILL);
              })),
              128 + SIGKILL);
    const std::string wal = bytes_of(path().string() + "-wal");
    EXPECT_EQ(reason_with_all_left_as_it_is(), "has version 2 of the store's format; this claimq knows version 1");
    EXPECT_TRUE(bytes_of(path().string() + "-wal") == wal);
}

TEST_F(StoreOpening, RefusesALockFileThatIsALinkOrHasAnotherName) {
    const auto inflight = path().string() + "-inflight";
    write_file(folder_.path() / "precious", "");
    std::filesystem::create_symlink(folder_.path() / "precious", inflight);
    EXPECT_NE(reason().find("lock file processed.db-inflight: "), std::string::npos);
    std::filesystem::remove(inflight);
    std::filesystem::create_hard_link(folder_.path() / "precious", inflight);
    EXPECT_NE(reason().find("has another name"), std::string::npos);
}

// As someone without root's rights, in a process of its own.
int status_unprivileged(const std::function<bool()>& holds) {
    return status_of(start_child([&] { return give_up_root() && holds() ? 0 : 1; }));
}

TEST_F(StoreOpening, RefusesAReadOnlyFolder) {
    ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
    EXPECT_EQ(status_unprivileged([&] { return refusal({.path = path()}).ends_with("Permission denied"); }), 0);
    EXPECT_EQ(names_in(folder_.path()), Words{});
    ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
}

TEST_F(StoreOpening, RefusesAStoreInAReadOnlyFolder) {
    (void)open();
    ASSERT_EQ(chmod(path().c_str(), 0666), 0);
    ASSERT_EQ(chmod((path().string() + "-inflight").c_str(), 0666), 0);
    ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
    const std::string bytes = bytes_of(path());
    EXPECT_EQ(status_unprivileged([&] { return refusal({.path = path()}) != ""; }), 0);
    EXPECT_TRUE(bytes_of(path()) == bytes);
    ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
}

TEST_F(StoreOpening, RefusesAReadOnlyFile) {
    (void)open();
    ASSERT_EQ(chmod(path().c_str(), 0444), 0);
    ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
    const std::string bytes = bytes_of(path());
    EXPECT_EQ(status_unprivileged([&] { return refusal({.path = path()}).ends_with("is read-only"); }), 0);
    EXPECT_TRUE(bytes_of(path()) == bytes);
}

TEST(NetworkFileSystem, IsKnownByItsMagic) {
    EXPECT_EQ(store::network_file_system(NFS_SUPER_MAGIC), "NFS");
    EXPECT_EQ(store::network_file_system(SMB_SUPER_MAGIC), "SMB");
    EXPECT_EQ(store::network_file_system(SMB2_SUPER_MAGIC), "SMB");
    EXPECT_EQ(store::network_file_system(CIFS_SUPER_MAGIC), "CIFS");
    EXPECT_EQ(store::network_file_system(0xffffffffff534d42UL), "CIFS") << "as a negative number";
    EXPECT_EQ(store::network_file_system(EXT4_SUPER_MAGIC), std::nullopt);
    EXPECT_EQ(store::network_file_system(TMPFS_MAGIC), std::nullopt);
    EXPECT_EQ(store::network_file_system(OVERLAYFS_SUPER_MAGIC), std::nullopt);
}

// --- in use ---

TEST_F(StoreOpening, WaitsForAnotherThatIsMakingTheStore) {
    auto maker = other();
    maker.run("BEGIN EXCLUSIVE; CREATE TABLE half_made(x)");
    int pauses = 0;
    const Patience patience{.pause = [&](Milliseconds) {
        if (++pauses == 3) maker.run("ROLLBACK");
    }};
    EXPECT_NE(store::open_store(path(), patience), nullptr);
    EXPECT_EQ(pauses, 3);
}

TEST_F(StoreOpening, WaitsForAReaderThatIsInTheWayOfTheSwitchToWal) {
    (void)open();
    auto reader = other();
    EXPECT_EQ(reader.value("PRAGMA journal_mode = DELETE"), "delete");
    reader.run("BEGIN");
    EXPECT_EQ(reader.value("SELECT count(*) FROM processed"), "0");
    int pauses = 0;
    const Patience patience{.pause = [&](Milliseconds) {
        if (++pauses == 3) reader.run("COMMIT");
    }};
    EXPECT_NE(store::open_store(path(), patience), nullptr);
    EXPECT_EQ(pauses, 3);
}

TEST_F(StoreOpening, DoesNotWaitForEver) {
    (void)open();
    auto locker = other();
    locker.run("BEGIN IMMEDIATE");
    const Patience patience{.total = Milliseconds{20}, .pause = [](Milliseconds) {}};
    EXPECT_THROW((void)store::open_store(path(), patience), StoreBusy);
}

// --- the proof ---

TEST_F(StoreOpening, WritesSomethingDurableEachTime) {
    const auto first = open();
    const auto wal = std::filesystem::file_size(path().string() + "-wal");
    const auto second = open();
    EXPECT_GT(std::filesystem::file_size(path().string() + "-wal"), wal);
}

TEST_F(StoreOpening, RefusesAFullDisk) {
    for (const rlim_t room : {0U, 4096U, 24U * 1024U}) {
        const FileSizeLimit limit(room);
        EXPECT_NE(refusal({.path = path()}), "") << room;
    }
    EXPECT_EQ(refusal({.path = path()}), "") << "and nothing half made is in the way later";
}

}  // namespace
}  // namespace claimq::store_test
