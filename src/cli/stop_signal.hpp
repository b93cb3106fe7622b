// SIGTERM and SIGINT: the first asks the run to end, a second one ends it at once with status 128+n.
#pragma once
#include "claimq/stop_request.hpp"

namespace claimq::cli {

class StopSignal : public StopRequest {
public:
    // Blocks both signals in this thread and those it starts: make it before any other thread. Throws
    // Failure{os_error}.
    StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;
    ~StopSignal() override;

    [[nodiscard]] bool requested() override;
    [[nodiscard]] Watch watch() const override;

private:
    int fd_ = -1;
    bool requested_ = false;
};

// Ends the process with `status` when `time` has passed, whatever it is doing then: a write that hangs, a flush that
// does not return. Dying is safe, an unsettled delivery goes back to its queue. Uses SIGALRM.
void end_within(Milliseconds time, int status) noexcept;

}  // namespace claimq::cli
