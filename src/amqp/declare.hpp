// What topology does: declare the objects of include/claimq/topology.hpp, or look whether they are there.
#pragma once
#include <string>
#include <vector>

#include "amqp/broker.hpp"
#include "claimq/exit_status.hpp"
#include "claimq/topology.hpp"

namespace claimq::amqp {

enum class ObjectState { ok, missing, different, refused, unchecked };

struct ObjectReport {
    std::string object;  // "queue claim.in"
    ObjectState state = ObjectState::ok;
    std::string reason;  // the broker's words, or what could not be checked
};

// Declares and binds everything. From the first refusal on nothing more is changed, the rest is only looked at.
[[nodiscard]] std::vector<ObjectReport> declare_topology(Broker& broker, QueueType type);

// Changes nothing: looks each object up, and declares again those that exist, which the broker answers with ok when
// the properties are equal and with 406 when not. AMQP has no way to ask for a binding.
[[nodiscard]] std::vector<ObjectReport> check_topology(Broker& broker, QueueType type);

[[nodiscard]] std::string_view name(ObjectState) noexcept;
[[nodiscard]] ExitStatus status_of(ObjectState) noexcept;

}  // namespace claimq::amqp
