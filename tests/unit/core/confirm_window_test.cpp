#include "claimq/confirm_window.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace claimq {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start = TimePoint{} + 1h;
constexpr std::size_t plenty = 1'000'000;

OutgoingClaim claim(std::string guid, std::size_t size = 10) {
    return {std::move(guid), std::string(size, 'x'), {"file", 0}, {}};
}

// "a confirmed", "b returned 312 NO_ROUTE"
using Words = std::vector<std::string>;
Words words(const std::vector<ClosedPublish>& closed) {
    Words all;
    for (const auto& one : closed)
        all.push_back(one.claim.guid + " " + std::string(name(one.result)) +
                      (one.reason.empty() ? "" : " " + one.reason));
    return all;
}

Words guids(const std::vector<OutgoingClaim>& claims) {
    Words all;
    for (const auto& one : claims) all.push_back(one.guid);
    return all;
}

// A window in which "a", "b", … are open with the tags 1, 2, …
ConfirmWindow window_of(int claims) {
    ConfirmWindow window(plenty, plenty);
    for (int at = 0; at < claims; ++at) window.open(claim(std::string(1, static_cast<char>('a' + at))), start);
    return window;
}

Words confirmed(ConfirmWindow& window, std::uint64_t tag, Multiple multiple = Multiple::no,
                Confirm how = Confirm::ack) {
    return words(window.confirmed(tag, multiple, how));
}

// ---- confirms

TEST(ConfirmWindow, ConfirmsComeInAnyOrder) {
    auto window = window_of(4);
    EXPECT_EQ(confirmed(window, 3), Words{"c confirmed"});
    EXPECT_EQ(confirmed(window, 1), Words{"a confirmed"});
    EXPECT_EQ(confirmed(window, 4), Words{"d confirmed"});
    EXPECT_EQ(window.size(), 1u);
    EXPECT_EQ(confirmed(window, 2), Words{"b confirmed"});
    EXPECT_TRUE(window.empty());
}

TEST(ConfirmWindow, MultipleClosesAllThatIsOpenUpToTheTag) {
    auto window = window_of(5);
    EXPECT_EQ(confirmed(window, 2), Words{"b confirmed"});
    EXPECT_EQ(confirmed(window, 4, Multiple::yes), (Words{"a confirmed", "c confirmed", "d confirmed"}));
    EXPECT_EQ(confirmed(window, 5, Multiple::yes), Words{"e confirmed"});
}

TEST(ConfirmWindow, MultipleOfATagThatIsClosedItselfClosesTheEarlierOnes) {
    auto window = window_of(4);
    EXPECT_EQ(confirmed(window, 3), Words{"c confirmed"});
    EXPECT_EQ(confirmed(window, 3, Multiple::yes), (Words{"a confirmed", "b confirmed"}));
    EXPECT_EQ(window.size(), 1u);
}

TEST(ConfirmWindow, Tag0WithMultipleIsAllSoFar) {
    auto window = window_of(3);
    EXPECT_EQ(confirmed(window, 2), Words{"b confirmed"});
    EXPECT_EQ(confirmed(window, 0, Multiple::yes), (Words{"a confirmed", "c confirmed"}));
    EXPECT_EQ(confirmed(window, 0, Multiple::yes), Words{});
}

TEST(ConfirmWindow, ATagThatIsNotOpenClosesNothing) {
    auto window = window_of(3);
    EXPECT_EQ(confirmed(window, 0), Words{}) << "0 is no tag";
    EXPECT_EQ(confirmed(window, 4), Words{});
    EXPECT_EQ(confirmed(window, UINT64_MAX), Words{});
    EXPECT_EQ(confirmed(window, 4, Multiple::yes), Words{}) << "never published: who knows what was meant";
    EXPECT_EQ(confirmed(window, UINT64_MAX, Multiple::yes), Words{});
    EXPECT_EQ(confirmed(window, 1), Words{"a confirmed"});
    EXPECT_EQ(confirmed(window, 1), Words{});
    EXPECT_EQ(confirmed(window, 1, Multiple::yes), Words{});
    EXPECT_EQ(window.size(), 2u);
}

TEST(ConfirmWindow, ConfirmsOfAnEmptyWindowCloseNothing) {
    ConfirmWindow window(plenty, plenty);
    for (const auto multiple : {Multiple::no, Multiple::yes})
        for (const std::uint64_t tag : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX})
            EXPECT_EQ(confirmed(window, tag, multiple), Words{}) << tag;
}

TEST(ConfirmWindow, ANackRefuses) {
    auto window = window_of(4);
    EXPECT_EQ(confirmed(window, 2, Multiple::no, Confirm::nack), Words{"b nacked"});
    EXPECT_EQ(confirmed(window, 3, Multiple::yes, Confirm::nack), (Words{"a nacked", "c nacked"}));
    EXPECT_EQ(confirmed(window, 4), Words{"d confirmed"});
}

// ---- returns

TEST(ConfirmWindow, WhatIsReturnedAndThenAckedIsReturned) {
    auto window = window_of(3);
    window.returned("b", "312 NO_ROUTE");
    EXPECT_EQ(window.size(), 3u) << "a return closes nothing yet";
    EXPECT_EQ(confirmed(window, 3, Multiple::yes), (Words{"a confirmed", "b returned 312 NO_ROUTE", "c confirmed"}));
}

TEST(ConfirmWindow, WhatIsReturnedAndThenNackedIsNacked) {
    auto window = window_of(1);
    window.returned("a", "312 NO_ROUTE");
    EXPECT_EQ(confirmed(window, 1, Multiple::no, Confirm::nack), Words{"a nacked"});
}

TEST(ConfirmWindow, AReturnOfAnUnknownIdMeansNobody) {
    auto window = window_of(2);
    EXPECT_EQ(confirmed(window, 2), Words{"b confirmed"});
    window.returned("b", "312 NO_ROUTE");
    window.returned("z", "312 NO_ROUTE");
    window.returned("", "312 NO_ROUTE");
    EXPECT_EQ(confirmed(window, 1), Words{"a confirmed"});
}

TEST(ConfirmWindow, OfTwoClaimsWithOneGuidTheOlderIsReturnedFirst) {
    ConfirmWindow window(plenty, plenty);
    window.open(claim("g", 1), start);
    window.open(claim("g", 2), start);
    window.open(claim("g", 3), start);
    window.returned("g", "first");
    window.returned("g", "second");
    const auto closed = window.confirmed(3, Multiple::yes, Confirm::ack);
    EXPECT_EQ(words(closed), (Words{"g returned first", "g returned second", "g confirmed"}));
    EXPECT_EQ(closed[0].claim.body.size(), 1u);
    EXPECT_EQ(closed[2].claim.body.size(), 3u);
}

TEST(ConfirmWindow, AReturnPassesOverWhatIsClosed) {
    ConfirmWindow window(plenty, plenty);
    for (int at = 0; at < 3; ++at) window.open(claim("g"), start);
    EXPECT_EQ(confirmed(window, 2), Words{"g confirmed"});
    window.returned("g", "first");
    window.returned("g", "second");
    EXPECT_EQ(confirmed(window, 0, Multiple::yes), (Words{"g returned first", "g returned second"}));
}

// ---- room

TEST(ConfirmWindow, HasRoomForSoManyClaims) {
    ConfirmWindow window(2, plenty);
    window.open(claim("a"), start);
    EXPECT_TRUE(window.has_room_for(10));
    window.open(claim("b"), start);
    EXPECT_FALSE(window.has_room_for(0));
    EXPECT_EQ(confirmed(window, 2), Words{"b confirmed"});
    EXPECT_TRUE(window.has_room_for(10)) << "although the closed one is behind an open one";
}

TEST(ConfirmWindow, HasRoomForSoManyBytes) {
    ConfirmWindow window(100, 10);
    window.open(claim("a", 4), start);
    EXPECT_TRUE(window.has_room_for(6));
    EXPECT_FALSE(window.has_room_for(7));
    window.open(claim("b", 6), start);
    EXPECT_TRUE(window.has_room_for(0));
    EXPECT_FALSE(window.has_room_for(1));
    EXPECT_EQ(confirmed(window, 1), Words{"a confirmed"});
    EXPECT_TRUE(window.has_room_for(4));
    EXPECT_FALSE(window.has_room_for(5));
}

TEST(ConfirmWindow, OneClaimAlwaysHasRoom) {
    ConfirmWindow window(1, 10);
    EXPECT_TRUE(window.has_room_for(SIZE_MAX));
    window.open(claim("a", 1000), start);
    EXPECT_FALSE(window.has_room_for(0));
    EXPECT_EQ(confirmed(window, 1), Words{"a confirmed"});
    EXPECT_TRUE(window.has_room_for(1000));
    window.open(claim("b", 1000), start);
    EXPECT_EQ(guids(window.take_open()), Words{"b"});
    EXPECT_TRUE(window.has_room_for(1000));
}

// ---- the one that is too large

TEST(ConfirmWindow, TheTooLargeOneHasTheNamedSize) {
    ConfirmWindow window(plenty, plenty);
    for (const std::size_t size : {10u, 30u, 20u, 20u}) window.open(claim("s" + std::to_string(size), size), start);
    const auto taken = window.take_too_large(20);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->guid, "s20");
    EXPECT_EQ(guids(window.take_open()), (Words{"s10", "s30", "s20"}));
}

TEST(ConfirmWindow, TheTooLargeOneIsTheLargestWhereNoneHasTheNamedSize) {
    ConfirmWindow window(plenty, plenty);
    for (const std::size_t size : {10u, 30u, 20u}) window.open(claim("s" + std::to_string(size), size), start);
    const auto taken = window.take_too_large(31);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->guid, "s30");
    EXPECT_EQ(taken->body.size(), 30u);
    EXPECT_EQ(window.size(), 2u);
}

TEST(ConfirmWindow, TheTooLargeOneIsNoneThatIsClosed) {
    ConfirmWindow window(plenty, plenty);
    for (const std::size_t size : {10u, 30u, 20u}) window.open(claim("s" + std::to_string(size), size), start);
    EXPECT_EQ(confirmed(window, 2), Words{"s30 confirmed"});
    EXPECT_EQ(window.take_too_large(30)->guid, "s20");
    EXPECT_EQ(window.take_too_large(0)->guid, "s10");
    EXPECT_FALSE(window.take_too_large(0));
    EXPECT_FALSE(window.take_too_large(10));
    EXPECT_TRUE(window.empty());
}

// ---- once more, from the start

TEST(ConfirmWindow, WhatIsOpenIsTakenInOrderAndTagsBeginAt1Again) {
    auto window = window_of(5);
    window.returned("c", "312 NO_ROUTE");
    EXPECT_EQ(confirmed(window, 2), Words{"b confirmed"});
    auto open = window.take_open();
    EXPECT_EQ(guids(open), (Words{"a", "c", "d", "e"}));
    EXPECT_TRUE(window.empty());
    EXPECT_FALSE(window.waiting_since());
    EXPECT_EQ(guids(window.take_open()), Words{});
    for (auto& one : open) window.open(std::move(one), start + 1s);
    EXPECT_EQ(confirmed(window, 5), Words{});
    EXPECT_EQ(confirmed(window, 1), Words{"a confirmed"});
    EXPECT_EQ(confirmed(window, 2), Words{"c confirmed"}) << "the old channel's return says nothing of the new publish";
}

TEST(ConfirmWindow, TheClaimComesBackAsItWasOpened) {
    ConfirmWindow window(plenty, plenty);
    const auto& opened = window.open({"g", "the body", {"some file", 7}, {}}, start);
    EXPECT_EQ(opened.body, "the body");
    EXPECT_EQ(opened.first_sent, start);
    auto taken = window.take_open();
    window.open(std::move(taken.at(0)), start + 5s);
    const auto closed = window.confirmed(1, Multiple::no, Confirm::ack);
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_EQ(closed[0].claim.guid, "g");
    EXPECT_EQ(closed[0].claim.body, "the body");
    EXPECT_EQ(closed[0].claim.origin.file, "some file");
    EXPECT_EQ(closed[0].claim.origin.line, 7u);
    EXPECT_EQ(closed[0].claim.first_sent, start) << "kept when it is sent again";
}

TEST(ConfirmWindow, AnOpenClaimStaysWhereItIs) {
    ConfirmWindow window(plenty, plenty);
    window.open(claim("before"), start);
    const auto& kept = window.open(claim("kept"), start);
    for (int more = 0; more < 1000; ++more) window.open(claim("more"), start);
    EXPECT_EQ(confirmed(window, 1), Words{"before confirmed"});
    EXPECT_EQ(confirmed(window, 3), Words{"more confirmed"});
    EXPECT_EQ(kept.guid, "kept");
}

// ---- time

TEST(ConfirmWindow, WaitsSinceTheOldestOpenOneWasHandedOver) {
    ConfirmWindow window(plenty, plenty);
    EXPECT_EQ(window.waiting_since(), std::nullopt);
    window.open(claim("a"), start);
    window.open(claim("b"), start + 1s);
    window.open(claim("c"), start + 2s);
    EXPECT_EQ(window.waiting_since(), start);
    EXPECT_EQ(confirmed(window, 2), Words{"b confirmed"});
    EXPECT_EQ(window.waiting_since(), start);
    EXPECT_EQ(confirmed(window, 1), Words{"a confirmed"});
    EXPECT_EQ(window.waiting_since(), start + 2s);
    window.restart_waiting(start + 9s);
    EXPECT_EQ(window.waiting_since(), start + 9s);
    EXPECT_EQ(confirmed(window, 3), Words{"c confirmed"});
    EXPECT_EQ(window.waiting_since(), std::nullopt);
    window.restart_waiting(start + 10s);
    EXPECT_EQ(window.waiting_since(), std::nullopt);
}

TEST(ConfirmWindow, ProgressIsThatOfTheLastOne) {
    ConfirmWindow window(plenty, plenty);
    window.progressed(start);
    window.open(claim("a"), start);
    window.progressed(start + 5s);
    EXPECT_EQ(window.waiting_since(), start + 5s);
    window.open(claim("b"), start + 6s);
    window.progressed(start + 7s);
    EXPECT_EQ(window.waiting_since(), start + 5s) << "b's bytes say nothing of a's confirm";
    EXPECT_EQ(confirmed(window, 1), Words{"a confirmed"});
    EXPECT_EQ(window.waiting_since(), start + 7s);
}

TEST(PublishResult, HasAName) {
    EXPECT_EQ(name(PublishResult::confirmed), "confirmed");
    EXPECT_EQ(name(PublishResult::returned), "returned");
    EXPECT_EQ(name(PublishResult::nacked), "nacked");
    EXPECT_EQ(name(PublishResult::too_large), "too-large");
    EXPECT_EQ(name(PublishResult::unknown), "unknown");
    EXPECT_EQ(name(PublishResult::not_sent), "not-sent");
}

// ---- against a model that keeps everything and searches it

class Model {
public:
    explicit Model(std::size_t most_claims, std::size_t most_bytes)
        : most_claims_(most_claims), most_bytes_(most_bytes) {}

    [[nodiscard]] std::size_t size() const {
        std::size_t count = 0;
        for (const auto& one : all_) count += one.open ? 1 : 0;
        return count;
    }
    [[nodiscard]] bool has_room_for(std::size_t bytes) const {
        for (const auto& one : all_) bytes += one.open ? one.bytes : 0;
        return size() == 0 || (size() < most_claims_ && bytes <= most_bytes_);
    }
    void open(const std::string& guid, std::size_t bytes, TimePoint now) { all_.push_back({guid, bytes, now}); }
    void progressed(TimePoint now) {
        if (!all_.empty()) all_.back().since = now;
    }
    void returned(const std::string& guid, const std::string& reason) {
        for (auto& one : all_) {
            if (!one.open || one.guid != guid || !one.returned.empty()) continue;
            one.returned = reason;
            return;
        }
    }
    Words confirmed(std::uint64_t tag, Multiple multiple, Confirm how) {
        Words closed;
        const bool known = tag <= all_.size() && (tag > 0 || multiple == Multiple::yes);
        for (std::uint64_t at = 1; known && at <= all_.size(); ++at) {
            auto& one = all_[at - 1];
            const bool meant = at == tag || (multiple == Multiple::yes && (tag == 0 || at < tag));
            if (!meant || !one.open) continue;
            one.open = false;
            closed.push_back(one.guid + (how == Confirm::nack   ? " nacked"
                                         : one.returned.empty() ? " confirmed"
                                                                : " returned " + one.returned));
        }
        return closed;
    }
    std::string take_too_large(std::size_t named) {
        Sent* meant = nullptr;
        for (auto& one : all_)
            if (one.open && one.bytes == named && meant == nullptr) meant = &one;
        if (meant == nullptr)
            for (auto& one : all_)
                if (one.open && (meant == nullptr || one.bytes > meant->bytes)) meant = &one;
        if (meant == nullptr) return {};
        meant->open = false;
        return meant->guid;
    }
    Words take_open() {
        Words taken;
        for (const auto& one : all_)
            if (one.open) taken.push_back(one.guid);
        all_.clear();
        return taken;
    }
    [[nodiscard]] std::optional<TimePoint> waiting_since() const {
        for (const auto& one : all_)
            if (one.open) return one.since;
        return std::nullopt;
    }
    void restart_waiting(TimePoint now) {
        for (auto& one : all_) one.since = now;
    }

private:
    struct Sent {
        std::string guid;
        std::size_t bytes;
        TimePoint since;
        std::string returned{};
        bool open = true;
    };
    std::size_t most_claims_;
    std::size_t most_bytes_;
    std::vector<Sent> all_;  // of this channel, by tag
};

class RandomRun {
public:
    explicit RandomRun(unsigned seed) : random_(seed) {}

    void step() {
        now_ += Milliseconds{below(3)};
        switch (below(20)) {
            case 0: return compare(guids(window_.take_open()), model_.take_open());
            case 1: return take_too_large();
            case 2: return window_.restart_waiting(now_), model_.restart_waiting(now_);
            case 3: return window_.progressed(now_), model_.progressed(now_);
            case 4:
            case 5:
            case 6: return returned();
            case 7:
            case 8:
            case 9:
            case 10:
            case 11: return confirmed();
            default: return open();
        }
    }
    void compare_state() const {
        ASSERT_EQ(window_.size(), model_.size());
        ASSERT_EQ(window_.empty(), model_.size() == 0);
        for (const std::size_t bytes : {0u, 1u, 7u, 20u, 40u, 60u})
            ASSERT_EQ(window_.has_room_for(bytes), model_.has_room_for(bytes)) << bytes;
        ASSERT_EQ(window_.waiting_since(), model_.waiting_since());
    }

private:
    unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }
    std::string guid() { return std::string(1, static_cast<char>('a' + below(4))); }
    static void compare(const Words& window, const Words& model) { ASSERT_EQ(window, model); }

    void open() {
        auto one = claim(guid(), below(20));
        model_.open(one.guid, one.body.size(), now_);
        window_.open(std::move(one), now_);
        ++opened_;
    }
    void returned() {
        const auto id = guid();
        const auto reason = "return " + std::to_string(below(1000));
        window_.returned(id, reason);
        model_.returned(id, reason);
    }
    void confirmed() {
        const std::uint64_t tag = below(20) == 0 ? UINT64_MAX : below(opened_ + 3);
        const auto multiple = below(3) == 0 ? Multiple::yes : Multiple::no;
        const auto how = below(3) == 0 ? Confirm::nack : Confirm::ack;
        compare(words(window_.confirmed(tag, multiple, how)), model_.confirmed(tag, multiple, how));
    }
    void take_too_large() {
        const auto named = below(25);
        const auto taken = window_.take_too_large(named);
        ASSERT_EQ(taken ? taken->guid : "", model_.take_too_large(named));
    }

    std::mt19937 random_;
    TimePoint now_ = start;
    unsigned opened_ = 0;
    ConfirmWindow window_{8, 60};
    Model model_{8, 60};
};

TEST(ConfirmWindow, DoesWhatTheModelDoes) {
    for (unsigned seed = 0; seed < 100; ++seed) {
        SCOPED_TRACE(seed);
        RandomRun run(seed);
        for (int step = 0; step < 300; ++step) {
            run.step();
            run.compare_state();
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

}  // namespace
}  // namespace claimq
