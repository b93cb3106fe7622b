// What the fuzz targets share: a property that must hold, and choices read out of the input.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

// libFuzzer's entry, one a target. Always returns 0; a property that does not hold ends the process.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace claimq::fuzz {

// Unlike assert() it is there in every build, so that the replay of the corpus checks as much as the fuzzer does.
inline void must(bool holds, const char* property, std::string_view seen = {}) {
    if (holds) return;
    std::cerr << "does not hold: " << property << ": " << seen << std::endl;
    std::abort();
}

[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

[[nodiscard]] inline bool is_printable_ascii(std::string_view text) {
    for (const char c : text)
        if (c < 0x20 || c > 0x7E) return false;
    return true;
}

// The input as a row of choices. When it is used up, all further ones are 0.
class Choices {
public:
    explicit Choices(std::string_view input) : rest_(input) {}

    [[nodiscard]] bool none_left() const { return rest_.empty(); }
    [[nodiscard]] std::uint8_t byte() {
        const auto bytes = text(1);
        return bytes.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes[0]);
    }
    [[nodiscard]] std::uint64_t number(int bytes) {
        std::uint64_t value = 0;
        for (int at = 0; at < bytes; ++at) value = value << 8u | byte();
        return value;
    }
    [[nodiscard]] std::string_view text(std::size_t length) {
        const auto taken = rest_.substr(0, length);
        rest_.remove_prefix(taken.size());
        return taken;
    }
    [[nodiscard]] std::string_view rest() { return text(rest_.size()); }

private:
    std::string_view rest_;
};

}  // namespace claimq::fuzz
