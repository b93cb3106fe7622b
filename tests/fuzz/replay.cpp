// Runs each file of the folders it is given through the target it is linked with: the corpus as a plain test, for
// compilers without libFuzzer too.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "property.hpp"

int main(int argc, char** argv) {
    std::vector<std::filesystem::path> files;
    for (int at = 1; at < argc; ++at)
        for (const auto& entry : std::filesystem::directory_iterator(argv[at])) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const auto& path : files) {
        std::cout << path.filename().string() << std::endl;  // flushed: the last one named is the one that failed
        std::ifstream file(path, std::ios::binary);
        const std::string bytes(std::istreambuf_iterator<char>(file), {});
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    std::cout << files.size() << " inputs\n";
    return files.empty() ? 1 : 0;  // nothing was checked
}
