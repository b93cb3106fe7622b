// A folder of the test's own that goes away with it.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace claimq::test {

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "claimq-test-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = std::filesystem::canonical(name);
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] std::string path(const std::string& name = "") const { return (path_ / name).string(); }

    // Returns the file's path.
    std::string file(const std::string& name, const std::string& bytes) const {
        std::ofstream stream(path_ / name, std::ios::binary);
        stream << bytes;
        if (!stream.flush()) throw std::runtime_error("cannot write " + path(name));
        return path(name);
    }

private:
    std::filesystem::path path_;
};

}  // namespace claimq::test
