// What the broker said, as text to compare.
#pragma once
#include <string>

#include "amqp/incoming.hpp"

namespace claimq::amqp {

template <class... Parts>
[[nodiscard]] std::string row(const Parts&... parts) {
    std::string text;
    (text.append(parts).append("|"), ...);
    return text;
}

[[nodiscard]] inline std::string described(const Incoming& said) {
    using std::to_string;
    struct Describe {
        std::string operator()(const incoming::Deliver& d) const {
            return row("deliver", to_string(d.tag), d.redelivered == Redelivered::yes ? "again" : "first", d.message_id,
                       d.body);
        }
        std::string operator()(const incoming::Returned& r) const { return row("returned", r.message_id, r.reason); }
        std::string operator()(const incoming::Confirmed& c) const {
            return row(c.how == Confirm::ack ? "ack" : "nack", to_string(c.tag),
                       c.multiple == Multiple::yes ? "multiple" : "one");
        }
        std::string operator()(const incoming::ConsumerCancelled&) const { return "cancelled"; }
        std::string operator()(const incoming::CancelOk&) const { return "cancel-ok"; }
        std::string operator()(const incoming::Depth& d) const { return row("depth", to_string(d.ready)); }
        std::string operator()(const incoming::ChannelClosed& c) const {
            return row("channel closed", to_string(c.code), c.text);
        }
        std::string operator()(const incoming::ConnectionClosed& c) const {
            return row("connection closed", to_string(c.code), c.text);
        }
        std::string operator()(const incoming::Blocked& b) const { return row("blocked", b.reason); }
        std::string operator()(const incoming::Unblocked&) const { return "unblocked"; }
    };
    return std::visit(Describe{}, said);
}

}  // namespace claimq::amqp
