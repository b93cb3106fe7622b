// How one call to the claims system ended.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace claimq {

// A final status line (200-999) was received, whatever became of the rest of the answer.
struct Answered {
    int status = 0;
    std::optional<std::chrono::seconds> retry_after;  // the header, when it was there and meant something
    std::string reason;                               // the first 1 KiB of the answer's body
};

enum class CallFailure { refused, unresolved, timed_out, cut, garbage };

struct NotAnswered {
    CallFailure how = CallFailure::cut;
    std::string reason;  // libcurl's or the system's words
};

// Our own side failed (no descriptors or memory, an unusable CA file, a certificate we do not accept): no answer at
// all, so nothing may be settled on it.
struct OwnFault {
    std::string reason;
};

using Answer = std::variant<Answered, NotAnswered, OwnFault>;

[[nodiscard]] std::string_view name(CallFailure) noexcept;

}  // namespace claimq
