// A signal that somebody sends.
#pragma once
#include "claimq/stop_request.hpp"
#include "fake_clock.hpp"

namespace claimq::fake {

class FakeStop : public StopRequest {
public:
    explicit FakeStop(Descriptors& descriptors)
        : descriptors_(descriptors), fd_(descriptors.add([this] { return signalled_ ? TimePoint{} : never; })) {}
    FakeStop(const FakeStop&) = delete;
    FakeStop& operator=(const FakeStop&) = delete;
    ~FakeStop() override { descriptors_.remove(fd_); }

    void signal() noexcept { signalled_ = true; }

    [[nodiscard]] bool requested() override { return requested_ = requested_ || signalled_; }
    [[nodiscard]] Watch watch() const override { return requested_ ? Watch{} : Watch{fd_, 1, never}; }

private:
    Descriptors& descriptors_;
    bool signalled_ = false;
    bool requested_ = false;
    int fd_;
};

}  // namespace claimq::fake
