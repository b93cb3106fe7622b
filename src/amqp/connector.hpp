// Connecting in the background: name lookup, TCP, TLS, login and the calls at start-up can block for seconds, which the
// loop must not.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "amqp/connection.hpp"

namespace claimq::amqp {

// A connection on which everything at start-up is done.
struct Prepared {
    std::unique_ptr<Connection> connection;
    std::vector<std::string> warnings;
};

// One attempt: a short-lived thread that hands its result over. An attempt that is still running when this object dies
// is left behind; what it connects is closed at once.
class Connector {
public:
    explicit Connector(std::function<Prepared()> prepare);
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;
    ~Connector() = default;

    // The result once it is there; throws what the attempt threw (Failure, std::bad_alloc, …).
    [[nodiscard]] std::optional<Prepared> take();

    [[nodiscard]] Watch watch() const noexcept;

private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace claimq::amqp
