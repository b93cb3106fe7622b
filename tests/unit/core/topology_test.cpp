#include "claimq/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace claimq {
namespace {

using Arguments = std::map<std::string, std::string>;

std::map<std::string, Arguments> declared(QueueType type) {
    std::map<std::string, Arguments> all;
    for (const auto& queue : queues(type)) {
        Arguments arguments;
        for (const auto& argument : queue.arguments) arguments.emplace(argument.name, argument.value);
        EXPECT_EQ(arguments.size(), queue.arguments.size()) << "an argument is given twice";
        EXPECT_TRUE(all.emplace(queue.name, arguments).second);
    }
    return all;
}

TEST(Topology, ExchangesAreTheTwoOfTheSpecification) {
    EXPECT_EQ((std::vector<std::string>{exchanges.begin(), exchanges.end()}),
              (std::vector<std::string>{"eai.claim", "eai.dlx"}));
}

TEST(Topology, ClassicQueuesHaveExactlyTheSpecifiedArguments) {
    EXPECT_EQ(declared(QueueType::classic),
              (std::map<std::string, Arguments>{
                  {"claim.in", {{"x-dead-letter-exchange", "eai.dlx"}, {"x-dead-letter-routing-key", "claim.dead"}}},
                  {"claim.dead", {}},
              }));
}

TEST(Topology, QuorumQueuesHaveExactlyTheSpecifiedArguments) {
    EXPECT_EQ(declared(QueueType::quorum), (std::map<std::string, Arguments>{
                                               {"claim.in",
                                                {{"x-dead-letter-exchange", "eai.dlx"},
                                                 {"x-dead-letter-routing-key", "claim.dead"},
                                                 {"x-queue-type", "quorum"},
                                                 {"x-dead-letter-strategy", "at-least-once"},
                                                 {"x-overflow", "reject-publish"}}},
                                               {"claim.dead", {{"x-queue-type", "quorum"}}},
                                           }));
}

TEST(Topology, BindingsAreTheTwoOfTheSpecification) {
    std::vector<std::string> all;
    for (const auto& binding : bindings)
        all.push_back(std::string(binding.exchange) + " " + std::string(binding.queue) + " " +
                      std::string(binding.routing_key));
    std::ranges::sort(all);
    EXPECT_EQ(all, (std::vector<std::string>{"eai.claim claim.in claim", "eai.dlx claim.dead claim.dead"}));
}

TEST(Topology, TheWayToClaimDeadIsMadeFirst) {
    for (const auto type : {QueueType::classic, QueueType::quorum}) EXPECT_EQ(queues(type).front().name, "claim.dead");
    EXPECT_EQ(bindings.front().queue, "claim.dead");
}

TEST(Topology, WhatIsPublishedReachesClaimIn) {
    EXPECT_TRUE(std::ranges::any_of(bindings, [](const Binding& binding) {
        return binding.exchange == claim_exchange && binding.routing_key == claim_key && binding.queue == claim_queue;
    }));
}

}  // namespace
}  // namespace claimq
