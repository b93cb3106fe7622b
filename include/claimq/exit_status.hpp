// The exit statuses of all three programs; sysexits.h where it has a word.
#pragma once

namespace claimq {

enum class ExitStatus : int {
    ok = 0,
    refused = 1,       // publish: the broker refused at least one claim (unroutable, nacked, too large)
    usage = 64,        // found before any network I/O
    data = 65,         // a file is no claim
    no_input = 66,     // an input file cannot be read
    unavailable = 69,  // broker unreachable or gone, exchange or queue missing
    os_error = 71,     // a failure on this side: descriptors, memory, CA file, certificate not accepted
    store = 74,        // the inbox cannot be opened, read or written
    unknown = 75,      // outcome unknown, run it again
    conflict = 76,     // an object exists with other properties
    denied = 77,       // login refused, or no permission
};

// The one to report when both happened in one run.
[[nodiscard]] ExitStatus gravest(ExitStatus, ExitStatus) noexcept;

}  // namespace claimq
