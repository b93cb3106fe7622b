// Makes the store's folders and its file, for the owner alone whatever the umask, and refuses places where a store
// cannot live.
#pragma once
#include <filesystem>
#include <optional>
#include <string_view>

namespace claimq::store {

// Leaves a file that is there as it is. `path` is absolute. Throws StoreFault.
void make_private_file(const std::filesystem::path& path);

// The name of the network file system with this statfs f_type, or none.
[[nodiscard]] std::optional<std::string_view> network_file_system(unsigned long f_type) noexcept;

}  // namespace claimq::store
