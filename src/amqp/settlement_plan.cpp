#include "amqp/settlement_plan.hpp"

#include <algorithm>
#include <cstddef>

namespace claimq::amqp {

std::vector<SettlementFrame> plan_settlements(std::set<std::uint64_t>& unsettled,
                                              const std::vector<NotedSettlement>& noted) {
    std::vector<SettlementFrame> frames;
    std::vector<std::uint64_t> acks;
    for (const auto& [tag, settlement] : noted) {
        if (settlement == Settlement::ack) {
            acks.push_back(tag);
        } else {
            frames.push_back({tag, settlement, Multiple::no});
            unsettled.erase(tag);
        }
    }
    std::ranges::sort(acks);
    std::size_t oldest = 0;  // how many of the acks are the oldest unsettled tags
    while (oldest < acks.size() && !unsettled.empty() && acks[oldest] == *unsettled.begin()) {
        unsettled.erase(unsettled.begin());
        ++oldest;
    }
    if (oldest > 0) frames.push_back({acks[oldest - 1], Settlement::ack, oldest > 1 ? Multiple::yes : Multiple::no});
    for (; oldest < acks.size(); ++oldest) {
        frames.push_back({acks[oldest], Settlement::ack, Multiple::no});
        unsettled.erase(acks[oldest]);
    }
    return frames;
}

}  // namespace claimq::amqp
