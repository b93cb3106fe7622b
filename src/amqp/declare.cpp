#include "amqp/declare.hpp"

#include <functional>

#include "claimq/failure.hpp"

namespace claimq::amqp {

namespace {

using Ask = std::function<std::optional<Refusal>()>;

// Something that can be looked up and declared; a binding can only be declared.
struct Object {
    std::string name;
    Ask look_up;
    Ask declare;
};

std::vector<Object> objects(Broker& broker, QueueType type) {
    std::vector<Object> all;
    // Queues first: they are what differs when something does, and then the rest is left as it is.
    for (const auto& queue : queues(type))
        all.push_back({"queue " + std::string(queue.name),
                       [&broker, queue] { return broker.look_up_queue(queue.name); },
                       [&broker, queue] { return broker.declare(queue); }});
    for (const auto exchange : exchanges)
        all.push_back({"exchange " + std::string(exchange),
                       [&broker, exchange] { return broker.look_up_exchange(exchange); },
                       [&broker, exchange] { return broker.declare_exchange(exchange); }});
    for (const auto& binding : bindings)
        all.push_back({"binding " + std::string(binding.exchange) + " -> " + std::string(binding.queue) + " (key " +
                           std::string(binding.routing_key) + ")",
                       nullptr, [&broker, binding] { return broker.bind(binding); }});
    return all;
}

ObjectReport refused(const Object& object, const Refusal& refusal) {
    switch (refusal.code) {
        case 404: return {object.name, ObjectState::missing, refusal.text};
        case 406: return {object.name, ObjectState::different, refusal.text};
        default: return {object.name, ObjectState::refused, refusal.text};
    }
}

// The connection failed: say over which object.
template <typename Asked>
auto naming(const Object& object, Asked ask) {
    try {
        return ask(object);
    } catch (const Failure& failure) {
        throw Failure(failure.status(), object.name + ": " + failure.what());
    }
}

ObjectReport check(const Object& object) {
    if (!object.look_up) return {object.name, ObjectState::unchecked, "AMQP cannot ask for a binding"};
    if (const auto refusal = object.look_up()) return refused(object, *refusal);
    const auto refusal = object.declare();
    if (refusal && refusal->code == 403)
        return {object.name, ObjectState::ok, "it is there; its properties are unchecked without configure permission"};
    return refusal ? refused(object, *refusal) : ObjectReport{object.name, ObjectState::ok, {}};
}

ObjectReport declare(const Object& object) {
    const auto refusal = object.declare();
    return refusal ? refused(object, *refusal) : ObjectReport{object.name, ObjectState::ok, {}};
}

}  // namespace

std::vector<ObjectReport> declare_topology(Broker& broker, QueueType type) {
    std::vector<ObjectReport> reports;
    bool all_well = true;
    for (const auto& object : objects(broker, type)) {
        reports.push_back(naming(object, all_well ? declare : check));
        if (!all_well && reports.back().state == ObjectState::missing)
            reports.back().reason = "not declared, since nothing is changed after what is said above";
        all_well = all_well && reports.back().state == ObjectState::ok;
    }
    return reports;
}

std::vector<ObjectReport> check_topology(Broker& broker, QueueType type) {
    std::vector<ObjectReport> reports;
    for (const auto& object : objects(broker, type)) reports.push_back(naming(object, check));
    return reports;
}

std::string_view name(ObjectState state) noexcept {
    switch (state) {
        case ObjectState::ok: return "ok";
        case ObjectState::missing: return "missing";
        case ObjectState::different: return "different";
        case ObjectState::refused: return "refused";
        case ObjectState::unchecked: return "unchecked";
    }
    return "?";
}

ExitStatus status_of(ObjectState state) noexcept {
    switch (state) {
        case ObjectState::ok:
        case ObjectState::unchecked: return ExitStatus::ok;
        case ObjectState::missing: return ExitStatus::unavailable;
        case ObjectState::different: return ExitStatus::conflict;
        case ObjectState::refused: return ExitStatus::denied;
    }
    return ExitStatus::ok;
}

}  // namespace claimq::amqp
