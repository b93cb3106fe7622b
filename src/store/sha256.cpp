#include "store/sha256.hpp"

#include <openssl/evp.h>

#include <cassert>

namespace claimq::store {

namespace {

// For the life of the process: EVP_sha256() would have OpenSSL look for it at every call (EVP_MD_fetch(3)).
const EVP_MD* algorithm() {
    static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return fetched;
}

}  // namespace

Sha256 sha256(std::string_view bytes) {
    Sha256 digest;
    [[maybe_unused]] const int ok = EVP_Digest(
        bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, algorithm(), nullptr);
    assert(ok == 1);  // fails without memory or without the default provider: no digest, no way to go on
    return digest;
}

LockByte lock_byte(std::string_view id) {
    const Sha256 digest = sha256(id);
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < 8; ++i) first = first << 8 | std::to_integer<std::uint64_t>(digest[i]);
    return static_cast<LockByte>(first >> 1);
}

}  // namespace claimq::store
