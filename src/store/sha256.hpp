// SHA-256: it tells one body from another, and gives an id its lock byte.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace claimq::store {

using Sha256 = std::array<std::byte, 32>;

[[nodiscard]] Sha256 sha256(std::string_view bytes);

// The byte of the in-flight file that stands for an id: the first 63 bits of its digest, since off_t is signed. Fixed
// for ever: two releases that differ here and share a store would call a claim twice. Two ids on one byte (one pair in
// 10^19) only wait for one another.
using LockByte = std::int64_t;
[[nodiscard]] LockByte lock_byte(std::string_view id);

}  // namespace claimq::store
