#include "consume_fixture.hpp"

#include <unistd.h>

#include <sstream>

#include "descriptors.hpp"

namespace claimq::consume_test {

namespace {

constexpr auto silent = static_cast<LogLevel>(-1);

}  // namespace

ConsumeTest::ConsumeTest() {
    options_.until_empty = true;
    world_.witness.tell([this](const fake::Happened& one) {
        journal_.push_back(text_of(one));
        if (journal_.back() == deadly_) process_->die();
    });
}

ConsumeTest::~ConsumeTest() = default;

void ConsumeTest::TearDown() { EXPECT_EQ(world_.broker.errors(), Texts{}); }

int ConsumeTest::publish(std::string id, std::string body, Redelivered redelivered) {
    return world_.broker.publish(std::move(id), std::move(body), redelivered);
}

void ConsumeTest::publish_many(int count) {
    for (int n = 1; n <= count; ++n) publish("c" + std::to_string(n));
}

void ConsumeTest::always(const CallPlan& plan) {
    world_.claims.plan = [plan](const Request&) { return plan; };
}

void ConsumeTest::run_for(Milliseconds time) {
    options_.until_empty = false;
    options_.max_time = time;
}

void ConsumeTest::at(Milliseconds time, std::function<void()> action) {
    world_.clock.at(world_.clock.now() + time, std::move(action));
}

void ConsumeTest::stop() { seams_->stop.signal(); }

void ConsumeTest::lose_connection(const fake::Loss& loss) { world_.broker.lose_connections(loss); }

ExitStatus ConsumeTest::run() { return run(silent); }

ExitStatus ConsumeTest::run(LogLevel level) try {
    const auto began = world_.clock.now();
    process_ = std::make_unique<fake::Process>(process_ ? process_->number() + 1 : 1);
    seams_.emplace(world_, *process_, options_);
    prepare_(*seams_);
    fake::FakeWaiter waiter(world_.clock, world_.descriptors);
    Log log("consumer", level, LogFormat::plain);
    consume::ConsumeLoop loop(seams_->channel, seams_->inbox, seams_->api, waiter, seams_->stop, log, options_);
    const auto status = loop.run();
    totals_ = loop.totals();
    took_ = std::chrono::duration_cast<Milliseconds>(world_.clock.now() - began);
    turns_ = waiter.turns();
    most_in_flight_ = seams_->api.most_in_flight();
    EXPECT_EQ(seams_->api.errors(), Texts{});
    seams_->channel.close();
    seams_.reset();
    return status;
} catch (...) {
    seams_.reset();
    throw;
}

Texts ConsumeTest::run_and_read_log(LogLevel level) {
    const test::Captured captured(STDERR_FILENO);
    static_cast<void>(run(level));
    std::istringstream said(captured.text());
    Texts lines;
    for (std::string line; std::getline(said, line);) lines.push_back(line);
    return lines;
}

bool ConsumeTest::run_until_death_at(const std::string& text) {
    deadly_ = text;
    try {
        static_cast<void>(run());
        return false;
    } catch (const fake::Died&) {
        deadly_.clear();
        return true;
    }
}

std::size_t ConsumeTest::times(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count(journal_, text));
}

Texts ConsumeTest::journal_of(const Texts& beginnings) const {
    Texts lines;
    for (const auto& line : journal_)
        if (std::ranges::any_of(beginnings, [&](const auto& begin) { return line.starts_with(begin); }))
            lines.push_back(line);
    return lines;
}

}  // namespace claimq::consume_test
