// A run of publish in a world of its own: a clock that moves only while the run waits, a broker with a state, real
// files and pipes to read claims from, and a report that remembers.
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "claimq/failure.hpp"
#include "claimq/publish_channel.hpp"
#include "descriptors.hpp"
#include "fake_clock.hpp"
#include "publish/publish_run.hpp"
#include "temporary_folder.hpp"

namespace claimq::publish {

using namespace std::chrono_literals;
using fake::FakeClock;
using fake::Stuck;
using Words = std::vector<std::string>;

// One connection as the broker sees it; it outlives the run's channel object.
struct Session {
    struct Sent {
        std::string guid, body;
        const OutgoingClaim* claim = nullptr;  // the run's, which has to stay as it is until it is confirmed
        bool confirmed = false;
    };
    int number = 0;          // from 1
    std::vector<Sent> sent;  // by tag, from 1
    std::deque<PublishEvent> events;
    bool ready = true;
    bool in_use = true;         // the run's channel object lives
    bool said_goodbye = false;  // closed by the run

    [[nodiscard]] Words guids() const {
        Words all;
        for (const auto& one : sent) all.push_back(one.guid);
        return all;
    }
    [[nodiscard]] std::size_t unconfirmed() const {
        return static_cast<std::size_t>(std::ranges::count(sent, false, &Sent::confirmed));
    }
};

class FakeBroker {
public:
    explicit FakeBroker(FakeClock& clock) : clock_(clock) {}

    // What the test decides: what a publish and a new connection lead to. By default nothing happens by itself.
    std::function<void(Session&, std::uint64_t tag)> on_publish = [](Session&, std::uint64_t) {};
    std::function<void(Session&)> on_open = [](Session&) {};
    std::function<void(int connection)> before_open = [](int) {};  // may throw Failure

    [[nodiscard]] OpenPublishChannel open() {
        return [this](int least_attempts) -> std::unique_ptr<PublishChannel> {
            least_attempts_.push_back(least_attempts);
            before_open(static_cast<int>(least_attempts_.size()));
            sessions_.push_back(std::make_unique<Session>());
            auto& session = *sessions_.back();
            session.number = static_cast<int>(sessions_.size());
            on_open(session);
            return std::make_unique<Channel>(*this, session);
        };
    }

    // ---- what the broker says; it says nothing to a session that is over

    void confirm(Session& session, std::uint64_t tag, Multiple multiple = Multiple::no, Confirm how = Confirm::ack) {
        for (auto at = multiple == Multiple::yes ? 1 : tag; at <= tag; ++at) {
            auto& sent = session.sent.at(at - 1);
            if (!sent.confirmed && how == Confirm::ack) ++acks[sent.guid];
            sent.confirmed = true;
        }
        session.events.emplace_back(publish_event::Confirmed{tag, multiple, how});
    }
    void confirm_all(Session& session) {
        if (!session.sent.empty()) confirm(session, session.sent.size(), Multiple::yes);
    }
    static void say(Session& session, PublishEvent event) { session.events.push_back(std::move(event)); }

    // By default: confirms each publish after `time`.
    void confirm_after(Milliseconds time) {
        on_publish = [this, time](Session& session, std::uint64_t tag) {
            clock_.at(clock_.now() + time, [this, &session, tag] {
                if (session.in_use) confirm(session, tag);
            });
        };
    }

    [[nodiscard]] const std::vector<int>& least_attempts() const { return least_attempts_; }
    [[nodiscard]] const std::vector<std::unique_ptr<Session>>& sessions() const { return sessions_; }
    [[nodiscard]] Session& session(std::size_t number) const { return *sessions_.at(number - 1); }
    [[nodiscard]] bool has_something_for(int fd) const {
        const auto number = static_cast<std::size_t>(fd - first_fd);
        return number <= sessions_.size() && !session(number).events.empty();
    }
    static constexpr int first_fd = 1'000'000;  // + the session's number

    std::map<std::string, int> acks;  // by guid: how many publishes of it the broker took over

private:
    class Channel : public PublishChannel {
    public:
        Channel(FakeBroker& broker, Session& session) : broker_(broker), session_(session) {}
        ~Channel() override {
            session_.in_use = false;
            for (const auto& sent : session_.sent) expect_untouched(sent);
        }
        [[nodiscard]] bool ready() const override { return session_.ready; }
        void publish(const OutgoingClaim& claim) override {
            EXPECT_TRUE(session_.ready) << "publish() on a channel that is not ready";
            session_.sent.push_back({claim.guid, claim.body, &claim});
            broker_.on_publish(session_, session_.sent.size());
        }
        [[nodiscard]] std::vector<PublishEvent> turn(TimePoint now) override {
            EXPECT_EQ(now, broker_.clock_.now());
            std::vector<PublishEvent> events(session_.events.begin(), session_.events.end());
            session_.events.clear();
            return events;
        }
        [[nodiscard]] Watch watch() const override { return {first_fd + session_.number, POLLIN, TimePoint::max()}; }
        void close() noexcept override { session_.said_goodbye = true; }

    private:
        // publish_channel.hpp: valid until it is confirmed or the channel dies.
        static void expect_untouched(const Session::Sent& sent) {
            if (sent.confirmed) return;
            EXPECT_EQ(sent.claim->guid, sent.guid);
            EXPECT_EQ(sent.claim->body, sent.body);
        }
        FakeBroker& broker_;
        Session& session_;
    };

    FakeClock& clock_;
    std::vector<std::unique_ptr<Session>> sessions_;
    std::vector<int> least_attempts_;
};

// Waits as poll(2) does: for a session's events, a real descriptor, or the time.
class PublishWaiter : public Waiter {
public:
    PublishWaiter(FakeClock& clock, const FakeBroker& broker) : clock_(clock), broker_(broker) {}

    [[nodiscard]] TimePoint now() const override { return clock_.now(); }
    void wait(std::span<const Watch> watches) override {
        auto due = fake::never;
        for (const auto& watch : watches) due = std::min(due, watch.due);
        while (!ready(watches) && clock_.now() < due) {
            const auto next = std::min(due, clock_.next());
            if (next == fake::never) throw Stuck("nothing will ever wake the run");
            clock_.advance_to(next);
        }
    }

private:
    [[nodiscard]] bool ready(std::span<const Watch> watches) const {
        return std::ranges::any_of(watches, [this](const Watch& watch) {
            if (watch.fd < 0) return false;
            if (watch.fd > FakeBroker::first_fd) return broker_.has_something_for(watch.fd);
            pollfd entry{watch.fd, watch.events, 0};
            return poll(&entry, 1, 0) > 0;
        });
    }
    FakeClock& clock_;
    const FakeBroker& broker_;
};

class FakeReport : public Report {
public:
    explicit FakeReport(const FakeClock& clock) : clock_(clock) {}

    void closed(const ClosedPublish& publish, TimePoint now) override {
        EXPECT_EQ(now, clock_.now());
        const auto& origin = publish.claim.origin;
        words.push_back(publish.claim.guid + " " + std::string(name(publish.result)) +
                        (publish.reason.empty() ? "" : ": " + publish.reason));
        places.push_back(publish.claim.guid + " " + std::to_string(origin.line));
        ++times[publish.claim.guid];
        if (publish.result == PublishResult::confirmed) ++confirmed[publish.claim.guid];
        EXPECT_EQ(publish.claim.first_sent == TimePoint{}, publish.result == PublishResult::not_sent);
    }
    void bad_input(const BadInput& one) override {
        bad.push_back(std::to_string(static_cast<int>(one.status)) + " line " + std::to_string(one.origin.line) + ": " +
                      one.reason);
        most_bad_in_a_turn = std::max(most_bad_in_a_turn, ++bad_in_this_turn_);
    }
    void trouble(const std::string& text) override { troubles.push_back(text); }
    void notice(const std::string& text) override { notices.emplace_back(clock_.now(), text); }
    void turned() override {
        bad_in_this_turn_ = 0;
        turns_now_ = clock_.now() == last_turn_ ? turns_now_ + 1 : 0;
        last_turn_ = clock_.now();
        if (turns_now_ > 2000) throw Stuck("the run spins: it turns without time going by");
    }

    Words words;   // "g1 confirmed", "g2 returned: 312 NO_ROUTE", as they came
    Words places;  // "g1 7": guid and line
    Words bad, troubles;
    std::vector<std::pair<TimePoint, std::string>> notices;
    std::map<std::string, int> times, confirmed;  // by guid
    int most_bad_in_a_turn = 0;

private:
    const FakeClock& clock_;
    int bad_in_this_turn_ = 0;
    int turns_now_ = 0;
    TimePoint last_turn_{};
};

class PublishWorld : public testing::Test {
protected:
    static std::string claim(const std::string& guid, std::size_t padding = 0) {
        return R"({"guid":")" + guid + R"(","a":")" + std::string(padding, 'x') + "\"}";
    }
    static std::string lines(const Words& guids) {
        std::string text;
        for (const auto& guid : guids) text += claim(guid) + "\n";
        return text;
    }
    static Words numbered(int count) {
        Words guids;
        for (int number = 1; number <= count; ++number) guids.push_back("g" + std::to_string(number));
        return guids;
    }
    static Words each(const Words& guids, const std::string& result) {
        Words words;
        for (const auto& guid : guids) words.push_back(guid + " " + result);
        return words;
    }

    // Runs on a file of these lines.
    ExitStatus run(const std::string& text) { return run_on({folder_.file("claims.ndjson", text)}); }
    ExitStatus run(const Words& guids) { return run(lines(guids)); }
    ExitStatus run_on_pipe() {
        const test::Redirected input(STDIN_FILENO, pipe_.reader());
        return run_on({"-"}, Framing::ndjson);
    }
    ExitStatus run_on(std::vector<std::string> files, Framing framing = Framing::by_name) {
        ClaimSource source(std::move(files), framing);
        PublishWaiter waiter(clock_, broker_);
        const auto status = PublishRun(source, broker_.open(), waiter, report_, options_).run();
        for (const auto& [guid, count] : report_.confirmed)
            EXPECT_GE(broker_.acks[guid], count) << guid << " counts as published though the broker never said so";
        return status;
    }

    [[nodiscard]] Milliseconds passed() const {
        return std::chrono::duration_cast<Milliseconds>(clock_.now() - FakeClock::start);
    }
    void after(Milliseconds time, std::function<void()> action) { clock_.at(clock_.now() + time, std::move(action)); }
    void type(Milliseconds when, const std::string& text) {
        clock_.at(FakeClock::start + when, [this, text] { pipe_.write(text); });
    }
    void end_input(Milliseconds when) {
        clock_.at(FakeClock::start + when, [this] { pipe_.end(); });
    }

    FakeClock clock_;
    FakeBroker broker_{clock_};
    FakeReport report_{clock_};
    Options options_;
    test::TemporaryFolder folder_;
    test::Pipe pipe_;
};

}  // namespace claimq::publish
