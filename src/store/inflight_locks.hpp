// Which ids are in somebody's hands, across all processes of this machine: one locked byte an id.
#pragma once
#include <filesystem>

#include "store/sha256.hpp"

namespace claimq::store {

class FileDescriptor {
public:
    explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
    ~FileDescriptor();
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

// The kernel frees the locks of a consumer that was killed at once, so there is no lease and no clean-up. Open file
// description locks, not POSIX ones: those vanish when any descriptor of the file is closed (fcntl(2)).
class InflightLocks {
public:
    // Makes the file where it is missing; it is never removed, since a second one would lock nothing. Throws
    // StoreFault.
    explicit InflightLocks(const std::filesystem::path&);

    enum class Attempt { ours, held_elsewhere };
    // Never waits. Taking a byte that is ours already succeeds. Throws StoreFault, e.g. when the kernel has no more
    // locks.
    [[nodiscard]] Attempt take(LockByte);
    void free(LockByte) noexcept;

private:
    FileDescriptor file_;
};

}  // namespace claimq::store
