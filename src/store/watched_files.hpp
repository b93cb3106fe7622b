// Notices that a file of the store was deleted or swapped under us: what is written then reaches nobody.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <vector>

namespace claimq::store {

class WatchedFiles {
public:
    // Remembers which file the path leads to now. Throws StoreFault when there is none.
    void add(std::filesystem::path);

    // Throws StoreFault unless every path still leads to the same file. One stat each; nothing is opened, since closing
    // it again would drop SQLite's locks (https://sqlite.org/howtocorrupt.html, section 2.2).
    void check() const;

private:
    struct File {
        std::filesystem::path path;
        dev_t device;
        ino_t inode;
    };
    std::vector<File> files_;
};

}  // namespace claimq::store
