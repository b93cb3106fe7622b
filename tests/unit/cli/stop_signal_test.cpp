// Each test is a process of its own: signals and timers belong to the whole process.
#include "cli/stop_signal.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "child_process.hpp"
#include "descriptors.hpp"

namespace claimq::cli {
namespace {

using namespace std::chrono_literals;
using test::status_of_child;

// Where a child's check failed, as its status.
#define CHECK_IN_CHILD(condition) \
    if (!(condition)) return __LINE__ % 100 + 1

bool is_readable(const Watch& watch) {
    pollfd entry{watch.fd, watch.events, 0};
    return watch.fd >= 0 && poll(&entry, 1, 0) == 1;
}

TEST(StopSignal, IsNotRequestedByItself) {
    EXPECT_EQ(status_of_child([] {
                  StopSignal stop;
                  CHECK_IN_CHILD(!stop.requested());
                  CHECK_IN_CHILD(!is_readable(stop.watch()));
                  CHECK_IN_CHILD(stop.watch().due == TimePoint::max());
                  return 0;
              }),
              0);
}

TEST(StopSignal, TheFirstSignalAsksAndStaysAsked) {
    for (const int number : {SIGTERM, SIGINT}) {
        EXPECT_EQ(status_of_child([number] {
                      StopSignal stop;
                      raise(number);
                      CHECK_IN_CHILD(is_readable(stop.watch()));
                      CHECK_IN_CHILD(stop.requested());
                      CHECK_IN_CHILD(stop.requested());
                      CHECK_IN_CHILD(!is_readable(stop.watch()));  // a loop that waits must not spin on it
                      return 0;
                  }),
                  0);
    }
}

TEST(StopSignal, ASecondSignalEndsAtOnceWithItsNumber) {
    for (const int first : {SIGTERM, SIGINT}) {
        for (const int second : {SIGTERM, SIGINT}) {
            EXPECT_EQ(status_of_child([first, second] {
                          StopSignal stop;
                          raise(first);
                          CHECK_IN_CHILD(stop.requested());
                          raise(second);
                          return 1;
                      }),
                      128 + second);
        }
    }
}

TEST(StopSignal, ASecondSignalThatIsThereAlreadyCountsToo) {
    const int status = status_of_child([] {
        StopSignal stop;
        raise(SIGTERM);
        raise(SIGINT);
        return stop.requested() ? 1 : 2;
    });
    EXPECT_TRUE(status == 128 + SIGTERM || status == 128 + SIGINT) << status << ": which came first is not kept";
}

TEST(StopSignal, TheSameSignalBeforeAnybodyLookedIsOne) {
    EXPECT_EQ(status_of_child([] {
                  StopSignal stop;
                  raise(SIGTERM);
                  raise(SIGTERM);
                  CHECK_IN_CHILD(stop.requested());
                  return 0;
              }),
              0);
}

TEST(EndWithin, EndsTheProcessWithTheStatusAndSaysWhy) {
    const test::Captured captured(STDERR_FILENO);
    EXPECT_EQ(status_of_child([] {
                  end_within(20ms, 74);
                  while (true) pause();
                  return 1;
              }),
              74);
    EXPECT_NE(captured.text().find("did not come to an end in time"), std::string::npos);
}

TEST(EndWithin, EndsAProcessThatHangsInAWrite) {
    const test::Captured captured(STDERR_FILENO);
    EXPECT_EQ(status_of_child([] {
                  const test::Pipe full;
                  end_within(20ms, 75);
                  while (true) full.write("nobody reads this, and a pipe holds so much only");
                  return 1;
              }),
              75);
}

TEST(EndWithin, DoesNotEndAProcessBefore) {
    EXPECT_EQ(status_of_child([] {
                  end_within(Milliseconds{315'360'000'000}, 74);  // ten years
                  end_within(1h, 74);
                  return 0;
              }),
              0);
}

TEST(EndWithin, NoTimeAtAllIsOverAtOnce) {
    const test::Captured captured(STDERR_FILENO);
    EXPECT_EQ(status_of_child([] {
                  alarm(60);
                  end_within(0ms, 74);
                  while (true) pause();
                  return 1;
              }),
              74);
}

#undef CHECK_IN_CHILD

}  // namespace
}  // namespace claimq::cli
