// The world failed (socket, disk, configuration): thrown, and caught only where a connection is tried again and in
// main. What is part of the answer (a 422, a file that is no claim) is a returned value instead.
#pragma once
#include <stdexcept>
#include <string>

#include "claimq/exit_status.hpp"

namespace claimq {

class Failure : public std::runtime_error {
public:
    // `text` is one line for the person who reads it: what failed, on which object, the reason in the words of the
    // broker or the system. It never holds a secret or a claim's body.
    Failure(ExitStatus status, const std::string& text) : std::runtime_error(text), status_(status) {}
    [[nodiscard]] ExitStatus status() const noexcept { return status_; }

private:
    ExitStatus status_;
};

}  // namespace claimq
