#include "store/watched_files.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "store/store_error.hpp"

namespace claimq::store {

namespace {

struct stat look_at(const std::filesystem::path& path) {
    struct stat found {};
    if (stat(path.c_str(), &found) == 0) return found;
    const char* reason = errno == ENOENT ? "was deleted" : std::strerror(errno);
    throw StoreFault(path.filename().string() + " " + reason);
}

}  // namespace

void WatchedFiles::add(std::filesystem::path path) {
    const struct stat found = look_at(path);
    files_.push_back({std::move(path), found.st_dev, found.st_ino});
}

void WatchedFiles::check() const {
    for (const File& file : files_) {
        const struct stat found = look_at(file.path);
        if (found.st_dev != file.device || found.st_ino != file.inode)
            throw StoreFault(file.path.filename().string() + " was replaced by another file");
    }
}

}  // namespace claimq::store
