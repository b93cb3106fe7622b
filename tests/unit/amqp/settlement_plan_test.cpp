#include "amqp/settlement_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <random>

namespace claimq::amqp {

void PrintTo(const SettlementFrame& frame, std::ostream* out) {
    *out << name(frame.settlement) << ' ' << frame.tag << (frame.multiple == Multiple::yes ? " and all before" : "");
}

namespace {

using Tags = std::set<std::uint64_t>;
using Noted = std::vector<NotedSettlement>;
using Frames = std::vector<SettlementFrame>;

constexpr auto ack = Settlement::ack;
constexpr auto requeue = Settlement::requeue;
constexpr auto dead_letter = Settlement::dead_letter;

struct Row {
    const char* name;
    Tags unsettled;
    Noted noted;
    Frames frames;
    Tags left;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class PlanSettlements : public testing::TestWithParam<Row> {};

TEST_P(PlanSettlements, Row) {
    auto unsettled = GetParam().unsettled;
    EXPECT_EQ(plan_settlements(unsettled, GetParam().noted), GetParam().frames);
    EXPECT_EQ(unsettled, GetParam().left);
}

INSTANTIATE_TEST_SUITE_P(
    Table, PlanSettlements,
    testing::Values(
        Row{"Nothing", {1, 2}, {}, {}, {1, 2}}, Row{"OneAck", {1, 2}, {{1, ack}}, {{1, ack, Multiple::no}}, {2}},
        Row{"TheOldestTwo", {1, 2, 3}, {{1, ack}, {2, ack}}, {{2, ack, Multiple::yes}}, {3}},
        Row{"AllInAnyOrder", {4, 5, 6}, {{6, ack}, {4, ack}, {5, ack}}, {{6, ack, Multiple::yes}}, {}},
        Row{"NotTheOldest", {1, 2, 3}, {{2, ack}, {3, ack}}, {{2, ack, Multiple::no}, {3, ack, Multiple::no}}, {1}},
        Row{"AGap",
            {1, 2, 3, 4},
            {{1, ack}, {2, ack}, {4, ack}},
            {{2, ack, Multiple::yes}, {4, ack, Multiple::no}},
            {3}},
        Row{"TagsWithHoles", {3, 7, 20}, {{7, ack}, {3, ack}}, {{7, ack, Multiple::yes}}, {20}},
        Row{"OthersFirst",
            {1, 2, 3},
            {{1, ack}, {2, requeue}, {3, ack}},
            {{2, requeue, Multiple::no}, {3, ack, Multiple::yes}},
            {}},
        Row{"OneToBeRejectedLater",
            {1, 2, 3},
            {{1, ack}, {3, ack}},
            {{1, ack, Multiple::no}, {3, ack, Multiple::no}},
            {2}},
        Row{"NoAcks",
            {1, 2},
            {{2, dead_letter}, {1, Settlement::hand_back}},
            {{2, dead_letter, Multiple::no}, {1, Settlement::hand_back, Multiple::no}},
            {}},
        Row{"AStrangeTag", {2}, {{1, ack}, {2, ack}}, {{1, ack, Multiple::no}, {2, ack, Multiple::no}}, {}}),
    [](const auto& row) { return std::string(row.param.name); });

// What a broker makes of the frames: its unacked tags, each with what became of it.
class Broker {
public:
    void deliver(std::uint64_t tag) { unacked_.insert(tag); }
    void on(const SettlementFrame& frame) {
        ASSERT_TRUE(unacked_.contains(frame.tag)) << "406: unknown delivery tag " << frame.tag;
        const auto end = unacked_.upper_bound(frame.tag);
        auto at = frame.multiple == Multiple::yes ? unacked_.begin() : std::prev(end);
        for (; at != end; at = unacked_.erase(at)) became[*at] = frame.settlement;
    }
    [[nodiscard]] const Tags& unacked() const { return unacked_; }
    std::map<std::uint64_t, Settlement> became;

private:
    Tags unacked_;
};

TEST(PlanSettlements, WhateverTheOrderEachTagBecomesWhatWasNotedForIt) {
    constexpr Settlement kinds[] = {ack, ack, ack, ack, requeue, dead_letter, Settlement::hand_back};
    std::minstd_rand random(1);
    for (int run = 0; run < 500; ++run) {
        Broker broker;
        Tags unsettled;
        Noted open;
        std::map<std::uint64_t, Settlement> wanted;
        for (std::uint64_t tag = 1; tag <= 40;) {
            for (auto more = random() % 5; more > 0; --more, ++tag) {
                broker.deliver(tag);
                unsettled.insert(tag);
                open.push_back({tag, kinds[random() % 7]});
            }
            Noted noted;
            for (auto some = random() % 6; some > 0 && !open.empty(); --some) {
                const auto at = open.begin() + static_cast<std::ptrdiff_t>(random() % open.size());
                wanted[at->tag] = at->settlement;
                noted.push_back(*at);
                open.erase(at);
            }
            for (const auto& frame : plan_settlements(unsettled, noted)) broker.on(frame);
            ASSERT_EQ(broker.became, wanted);
            ASSERT_EQ(broker.unacked(), unsettled);
        }
    }
}

}  // namespace
}  // namespace claimq::amqp
