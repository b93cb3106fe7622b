#include "store/private_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "store/store_error.hpp"

namespace claimq::store {

namespace {

[[noreturn]] void refuse(const std::string& what, int error) { throw StoreFault(what + ": " + std::strerror(error)); }

// Locks are kept per machine there or not at all, and SQLite's WAL needs memory that all its users share
// (https://sqlite.org/wal.html, "All processes using a database must be on the same host computer").
void refuse_network_file_system(const std::filesystem::path& place) {
    struct statfs system {};
    if (statfs(place.c_str(), &system) != 0) refuse(place, errno);
    if (const auto name = network_file_system(static_cast<unsigned long>(system.f_type)))
        throw StoreFault("is on a network file system (" + std::string(*name) + "); it has to be on a local disk");
}

// A new name survives a power cut only when its folder is flushed too (fsync(2)).
void flush_folder(const std::filesystem::path& folder) {
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) refuse(folder, errno);
    const int failed = fsync(fd);
    const int error = errno;
    close(fd);
    if (failed != 0 && error != EINVAL) refuse(folder, error);  // EINVAL: a file system that has no such thing
}

// The umask may have taken the owner's own rights away.
void give_to_owner(const std::filesystem::path& made, mode_t mode) {
    if (chmod(made.c_str(), mode) != 0) refuse(made, errno);
    flush_folder(made.parent_path());
}

void make_folders(const std::filesystem::path& folder) {
    struct stat there {};
    if (stat(folder.c_str(), &there) == 0) {
        if (!S_ISDIR(there.st_mode)) refuse(folder, ENOTDIR);
        return refuse_network_file_system(folder);
    }
    if (errno != ENOENT || !folder.has_relative_path()) refuse(folder, errno);
    make_folders(folder.parent_path());
    if (mkdir(folder.c_str(), S_IRWXU) == 0) return give_to_owner(folder, S_IRWXU);
    if (errno != EEXIST) refuse(folder, errno);  // EEXIST: another consumer that starts on a new store was first
    if (stat(folder.c_str(), &there) != 0) refuse(folder, errno);  // or a link to nowhere
}

void refuse_what_is_no_file(const std::filesystem::path& path) {
    struct stat there {};
    if (stat(path.c_str(), &there) != 0) {
        throw StoreFault(errno == ENOENT ? "is a link to a file that does not exist" : std::strerror(errno));
    }
    if (S_ISDIR(there.st_mode)) throw StoreFault("is a folder");
    if (!S_ISREG(there.st_mode)) throw StoreFault("is not a regular file");
    // A second name has a WAL and locks of its own: two consumers would corrupt the store and call claims twice
    // (https://sqlite.org/howtocorrupt.html, section 2.5).
    if (there.st_nlink > 1) throw StoreFault("has another name (a hard link)");
    refuse_network_file_system(path);
}

}  // namespace

void make_private_file(const std::filesystem::path& path) {
    if (!path.has_filename()) throw StoreFault("is a folder");
    make_folders(path.parent_path());
    // Not open() and close(): closing any descriptor of a file drops SQLite's locks on it in this whole process.
    if (mknod(path.c_str(), S_IFREG | S_IRUSR | S_IWUSR, 0) == 0) {
        give_to_owner(path, S_IRUSR | S_IWUSR);
    } else if (errno != EEXIST) {
        throw StoreFault(std::strerror(errno));
    }
    refuse_what_is_no_file(path);
}

std::optional<std::string_view> network_file_system(unsigned long f_type) noexcept {
    switch (f_type & 0xffffffffUL) {  // f_type is signed and 32 bits wide on some machines
        case NFS_SUPER_MAGIC: return "NFS";
        case SMB_SUPER_MAGIC:
        case SMB2_SUPER_MAGIC: return "SMB";
        case CIFS_SUPER_MAGIC: return "CIFS";
        case AFS_SUPER_MAGIC:
        case AFS_FS_MAGIC: return "AFS";
        case CODA_SUPER_MAGIC: return "Coda";
        case NCP_SUPER_MAGIC: return "NCP";
        case CEPH_SUPER_MAGIC: return "Ceph";
        default: return std::nullopt;
    }
}

}  // namespace claimq::store
