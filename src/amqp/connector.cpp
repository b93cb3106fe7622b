#include "amqp/connector.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "amqp/connect_failure.hpp"

namespace claimq::amqp {

struct Connector::Shared {
    Shared() : done(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (done < 0)
            throw ConnectFailure(ExitStatus::os_error, Retry::worthwhile, std::generic_category().message(errno));
    }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared() { close(done); }

    const int done;
    std::mutex mutex;
    std::optional<Prepared> prepared;
    std::exception_ptr failure;
};

Connector::Connector(std::function<Prepared()> prepare) : shared_(std::make_shared<Shared>()) {
    std::thread([shared = shared_, prepare = std::move(prepare)] {
        std::optional<Prepared> prepared;
        std::exception_ptr failure;
        try {
            prepared = prepare();
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(shared->mutex);
        shared->prepared = std::move(prepared);
        shared->failure = failure;
        eventfd_write(shared->done, 1);
    }).detach();
}

std::optional<Prepared> Connector::take() {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->failure) std::rethrow_exception(std::exchange(shared_->failure, nullptr));
    return std::exchange(shared_->prepared, std::nullopt);
}

Watch Connector::watch() const noexcept { return {shared_->done, POLLIN, TimePoint::max()}; }

}  // namespace claimq::amqp
