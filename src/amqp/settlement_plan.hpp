// Which settlements go out as which frames. No I/O: a table tests it.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "claimq/confirm_window.hpp"
#include "claimq/settlement.hpp"

namespace claimq::amqp {

struct NotedSettlement {
    std::uint64_t tag;
    Settlement settlement;
};

struct SettlementFrame {
    std::uint64_t tag;
    Settlement settlement;
    Multiple multiple;
    friend bool operator==(const SettlementFrame&, const SettlementFrame&) = default;
};

// `unsettled` are the tags that were delivered on this channel and not settled by a frame yet; what the plan settles is
// taken out. One ack with `multiple` acks every unsettled tag up to its own (AMQP 0-9-1, basic.ack), so it stands for
// the oldest unsettled ones and only where each of them is to be acked: then many acks are one frame.
[[nodiscard]] std::vector<SettlementFrame> plan_settlements(std::set<std::uint64_t>& unsettled,
                                                            const std::vector<NotedSettlement>& noted);

}  // namespace claimq::amqp
