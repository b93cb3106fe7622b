#include "store/inflight_locks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "store/store_error.hpp"

namespace claimq::store {

namespace {

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
    throw StoreFault("lock file " + path.filename().string() + ": " + why);
}

int open_lock_file(const std::filesystem::path& path) {
    constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path.c_str(), flags | O_CREAT | O_EXCL, kOwnerOnly);
    if (fd >= 0) {
        fchmod(fd, kOwnerOnly);  // the umask may have taken the owner's own rights away
        return fd;
    }
    if (errno == EEXIST) fd = open(path.c_str(), flags);
    if (fd < 0) refuse(path, std::strerror(errno));
    return fd;
}

// Another file, or one with a second name, would lock nothing against the consumers that use this name.
void refuse_other_than(const std::filesystem::path& path, int fd) {
    struct stat opened {};
    struct stat named {};
    if (fstat(fd, &opened) != 0 || lstat(path.c_str(), &named) != 0) refuse(path, std::strerror(errno));
    if (!S_ISREG(opened.st_mode)) refuse(path, "is not a regular file");
    if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino || opened.st_nlink != 1)
        refuse(path, "was deleted, replaced or has another name (a hard link)");
}

int set_lock(int fd, short type, LockByte byte) noexcept {
    struct flock lock {};  // l_pid has to be 0 for these locks
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return fcntl(fd, F_OFD_SETLK, &lock);
}

}  // namespace

FileDescriptor::~FileDescriptor() { close(fd_); }

InflightLocks::InflightLocks(const std::filesystem::path& path) : file_(open_lock_file(path)) {
    refuse_other_than(path, file_.get());
    // Does this file system know such locks? Found out before the first claim, not at it.
    constexpr LockByte probe = std::numeric_limits<LockByte>::max();
    if (take(probe) == Attempt::ours) free(probe);
}

InflightLocks::Attempt InflightLocks::take(LockByte byte) {
    if (set_lock(file_.get(), F_WRLCK, byte) == 0) return Attempt::ours;
    if (errno == EAGAIN || errno == EACCES) return Attempt::held_elsewhere;
    throw StoreFault(std::string("cannot lock an id in flight: ") + std::strerror(errno));
}

// Where this fails (no memory to split a range), the byte stays ours until the process ends: others wait, no more.
void InflightLocks::free(LockByte byte) noexcept { set_lock(file_.get(), F_UNLCK, byte); }

}  // namespace claimq::store
