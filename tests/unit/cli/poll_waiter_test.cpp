#include "cli/poll_waiter.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <csignal>
#include <thread>

#include "descriptors.hpp"

namespace claimq::cli {
namespace {

using namespace std::chrono_literals;

// No test here waits for longer than the time it is about; these bounds only tell "at once" from "never".
constexpr auto soon = 30s;

class PollWaiterTest : public testing::Test {
protected:
    Clock::duration wait(std::vector<Watch> watches) {
        const auto before = waiter_.now();
        waiter_.wait(watches);
        return waiter_.now() - before;
    }
    PollWaiter waiter_;
    test::Pipe pipe_;
};

TEST_F(PollWaiterTest, NowIsTheMonotonicClock) {
    const auto before = Clock::now();
    const auto now = waiter_.now();
    EXPECT_LE(before, now);
    EXPECT_LE(now, Clock::now());
}

TEST_F(PollWaiterTest, WhatIsDueIsNotWaitedFor) {
    const auto now = Clock::now();
    for (const auto due : {now, now - 1ns, now - 1h, TimePoint{}, TimePoint::min(), TimePoint::min() + 1ns}) {
        EXPECT_LT(wait({{-1, 0, due}}), soon);
        EXPECT_LT(wait({{pipe_.reader(), POLLIN, TimePoint::max()}, {-1, 0, due}}), soon);
    }
}

TEST_F(PollWaiterTest, ItWaitsUntilTheEarliestDue) {
    const auto due = Clock::now() + 20ms;
    waiter_.wait(
        std::array{Watch{-1, 0, TimePoint::max()}, Watch{pipe_.reader(), POLLIN, due}, Watch{-1, 0, due + 1h}});
    EXPECT_GE(Clock::now(), due) << "never early, or the loop would spin";
}

TEST_F(PollWaiterTest, AReadableDescriptorEndsIt) {
    pipe_.write("x");
    EXPECT_LT(wait({{pipe_.reader(), POLLIN, TimePoint::max()}}), soon);
    EXPECT_LT(wait({{-1, 0, TimePoint::max()}, {pipe_.reader(), POLLIN, Clock::now() + 1h}}), soon);
}

TEST_F(PollWaiterTest, ADescriptorThatBecomesReadableEndsIt) {
    std::thread writer([this] { pipe_.write("x"); });
    EXPECT_LT(wait({{pipe_.reader(), POLLIN, TimePoint::max()}}), soon);
    writer.join();
}

TEST_F(PollWaiterTest, TheEndOfAPipeEndsIt) {
    pipe_.end();
    EXPECT_LT(wait({{pipe_.reader(), POLLIN, TimePoint::max()}}), soon);
}

TEST_F(PollWaiterTest, WritableIsAskedForByItsEvent) {
    const test::Descriptor null(open("/dev/null", O_WRONLY | O_CLOEXEC));
    EXPECT_LT(wait({{null.get(), POLLOUT, TimePoint::max()}}), soon);
}

TEST_F(PollWaiterTest, ADescriptorThatIsClosedDoesNotHangIt) {
    test::Descriptor gone(dup(pipe_.reader()));
    const int number = gone.get();
    gone.reset();
    EXPECT_LT(wait({{number, POLLIN, TimePoint::max()}}), soon);
}

TEST_F(PollWaiterTest, FarAwayDuesAreNoOverflow) {
    pipe_.write("x");
    for (const auto due : {TimePoint::max(), TimePoint::max() - 1ns, Clock::now() + 87'600h})
        EXPECT_LT(wait({{pipe_.reader(), POLLIN, due}}), soon);
}

TEST_F(PollWaiterTest, ASignalEndsItEarly) {
    struct sigaction handled {};
    handled.sa_handler = [](int) {};
    struct sigaction before {};
    sigaction(SIGUSR1, &handled, &before);
    const auto waiting = pthread_self();
    std::atomic<bool> over = false;
    // Sent until it ends: the first one may come before the wait begins.
    std::thread sender([&] {
        while (!over) {
            pthread_kill(waiting, SIGUSR1);
            std::this_thread::yield();
        }
    });
    EXPECT_LT(wait({{pipe_.reader(), POLLIN, TimePoint::max()}}), soon);
    over = true;
    sender.join();
    sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace claimq::cli
