#include "claimq/exit_status.hpp"

#include <algorithm>
#include <array>

namespace claimq {

ExitStatus gravest(ExitStatus a, ExitStatus b) noexcept {
    using enum ExitStatus;
    // os_error, store and usage end a run by themselves; their places only make the order total.
    constexpr std::array order{unknown, store, os_error, denied, conflict, unavailable,
                               refused, data,  no_input, usage,  ok};
    return *std::ranges::find_if(order, [&](ExitStatus status) { return status == a || status == b; });
}

}  // namespace claimq
