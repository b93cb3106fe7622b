#include "cli/stop_signal.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>

#include "claimq/failure.hpp"

namespace claimq::cli {

namespace {

sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

volatile std::sig_atomic_t status_at_the_bound = 0;

}  // namespace

StopSignal::StopSignal() {
    const auto set = stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd_ < 0) throw Failure(ExitStatus::os_error, "signalfd: " + std::generic_category().message(errno));
}

StopSignal::~StopSignal() { close(fd_); }

bool StopSignal::requested() {
    signalfd_siginfo ignored{};
    if (requested_ || read(fd_, &ignored, sizeof ignored) != sizeof ignored) return requested_;
    requested_ = true;
    // From here on the signals do what no loop has to get round to.
    const auto set = stop_signals();
    for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int n) { _exit(128 + n); });
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    return true;
}

Watch StopSignal::watch() const { return requested_ ? Watch{} : Watch{fd_, POLLIN, TimePoint::max()}; }

void end_within(Milliseconds time, int status) noexcept {
    status_at_the_bound = status;
    std::signal(SIGALRM, [](int) {
        constexpr std::string_view text =
            "consumer: did not come to an end in time; what is unsettled goes back to its queue\n";
        [[maybe_unused]] const auto told = write(STDERR_FILENO, text.data(), text.size());
        _exit(status_at_the_bound);
    });
    time = std::max(time, Milliseconds{1});  // a timer of 0 is none
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(time.count() / 1000);
    timer.it_value.tv_usec = static_cast<suseconds_t>(time.count() % 1000 * 1000);
    setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace claimq::cli
