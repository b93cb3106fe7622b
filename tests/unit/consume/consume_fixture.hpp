// The loop on the fakes. Each test says what the world is like and runs the consumer once, or again on what is left.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake_world.hpp"

namespace claimq::consume_test {

using namespace std::chrono_literals;
using fake::answers;
using fake::CallPlan;
using fake::Effect;
using fake::fails;
using fake::Request;

using Texts = std::vector<std::string>;

class ConsumeTest : public testing::Test {
protected:
    ConsumeTest();
    ~ConsumeTest() override;
    void TearDown() override;  // the broker has nothing to complain of

    // ---- before the run
    int publish(std::string id, std::string body = "{}", Redelivered redelivered = Redelivered::no);
    void publish_many(int count);  // c1, c2, ...
    void always(const CallPlan& plan);
    void run_for(Milliseconds time);                                   // and not until the queue is empty
    void at(Milliseconds time, std::function<void()> action);          // from now on
    std::function<void(fake::Seams&)> prepare_ = [](fake::Seams&) {};  // done with each run's own before it begins

    // ---- while it runs
    void stop();
    void lose_connection(const fake::Loss& loss = {});

    ExitStatus run();
    [[nodiscard]] Texts run_and_read_log(LogLevel level = LogLevel::info);
    // The process dies at the moment that the journal says `text`; false when it ended before.
    [[nodiscard]] bool run_until_death_at(const std::string& text);

    // ---- after it
    [[nodiscard]] int calls(const std::string& id) const { return world_.claims.calls(id); }
    [[nodiscard]] int attempts(const std::string& id) const { return world_.claims.attempts(id); }
    [[nodiscard]] int total_calls() const { return static_cast<int>(world_.claims.requests().size()); }
    [[nodiscard]] bool is_processed(const std::string& id) const { return world_.store.processed.contains(id); }
    [[nodiscard]] std::size_t queued() const { return world_.broker.ready().size(); }
    [[nodiscard]] std::size_t acked() const { return world_.broker.acked().size(); }
    [[nodiscard]] std::size_t dead() const { return world_.broker.dead().size(); }

    [[nodiscard]] std::size_t times(std::string_view text) const;
    [[nodiscard]] Texts journal_of(const Texts& beginnings) const;  // what it says of these, in its order

    Texts journal_;  // of all that happened, see witness.hpp
    std::string deadly_;
    fake::World world_;
    consume::Options options_;
    std::unique_ptr<fake::Process> process_;
    std::optional<fake::Seams> seams_;  // while it runs
    consume::Totals totals_;            // of the last run
    Milliseconds took_{0};
    int turns_ = 0;
    int most_in_flight_ = 0;

private:
    ExitStatus run(LogLevel level);
};

}  // namespace claimq::consume_test
