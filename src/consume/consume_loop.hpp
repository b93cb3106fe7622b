// The consumer's loop, one thread: take deliveries, admit them, call the claims system, classify the answers, record,
// settle. What it decides is in include/claimq; what it does goes through the seams.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "claimq/claims_api.hpp"
#include "claimq/concurrency_bound.hpp"
#include "claimq/delivery_channel.hpp"
#include "claimq/exit_status.hpp"
#include "claimq/inbox.hpp"
#include "claimq/log.hpp"
#include "claimq/retry_wait.hpp"
#include "claimq/settlement.hpp"
#include "claimq/stop_request.hpp"
#include "claimq/waiter.hpp"
#include "consume/in_hand.hpp"
#include "consume/totals.hpp"

namespace claimq::consume {

struct Options {
    int prefetch = 5;
    int concurrency = 5;           // calls in flight at most, 1 to prefetch
    Milliseconds timeout{10'000};  // of one call
    Milliseconds retry_delay{0};
    std::optional<Milliseconds> max_time;  // nothing: for ever
    bool until_empty = false;
    Policy policy;
    // Called once, when the end begins: the run will be over within this time.
    std::function<void(Milliseconds)> on_ending = [](Milliseconds) {};
};

class ConsumeLoop {
public:
    ConsumeLoop(DeliveryChannel& channel, Inbox& inbox, ClaimsApi& api, Waiter& waiter, StopRequest& stop, Log& log,
                Options options);

    // Returns when the run is over; what is still unacked then goes back to its queue when the connection closes.
    [[nodiscard]] ExitStatus run();

    [[nodiscard]] const Totals& totals() const noexcept { return totals_; }

private:
    enum class Phase { consuming, draining, over };

    void turn();
    void wait();

    void on(channel_event::Consuming&);
    void on(channel_event::Delivered&);
    void on(channel_event::Depth&);
    void on(channel_event::Cancelled&);
    void on(channel_event::Notice&);
    void on(channel_event::Unreachable&);
    void on(channel_event::Lost&);
    void on(channel_event::Ended&);

    void on(inbox_event::Admitted&);
    void on(inbox_event::Recorded&);
    void on(inbox_event::Down&);
    void on(inbox_event::Up&);
    void on(inbox_event::Broken&);

    void tell_of_store_trouble();

    void start_calls();
    [[nodiscard]] bool may_call() const;
    void finished(FinishedCall& call);
    void adapt(const FinishedCall& call, int were_in_flight);
    void decided(Ticket ticket, Held& held, std::optional<std::chrono::seconds> retry_after);
    void requeue(Ticket ticket, Held& held, std::optional<std::chrono::seconds> retry_after);

    // The one place that settles. The id is released, or its outcome recorded, before.
    void settle(Ticket ticket, Held& held, Settlement settlement);
    void release_and_settle(Ticket ticket, Settlement settlement);

    void check_end();
    void end(ExitStatus status);
    void drain();
    void give_up();
    [[nodiscard]] bool wants_depth() const;
    void ask_whether_empty();

    DeliveryChannel& channel_;
    Inbox& inbox_;
    ClaimsApi& api_;
    Waiter& waiter_;
    StopRequest& stop_;
    Log& log_;
    Options options_;

    TimePoint now_;
    InHand in_hand_;
    std::deque<Ticket> ready_;  // in the order of admission; may hold tickets that are no longer in hand
    int in_flight_ = 0;
    ConcurrencyBound bound_;
    RetryQueue retries_;
    bool store_is_down_ = false;
    std::string store_trouble_;  // while it is down, and not told yet
    TimePoint tell_store_trouble_at_{};

    Phase phase_ = Phase::consuming;
    TimePoint deadline_;           // when the end begins
    TimePoint drained_by_{};       // when what others hold is no longer waited for
    TimePoint over_by_{};          // when nothing is waited for any more
    bool cancelled_ = false;       // cancel-ok has come: nothing more is delivered
    bool calls_are_over_ = false;  // no further call is started in this run
    TimePoint ask_depth_at_{};     // for until_empty
    bool depth_asked_ = false;
    bool delivered_since_asked_ = false;
    int empty_answers_ = 0;  // in a row, with no delivery between
    std::string trouble_;    // the last that was heard of the connection
    ExitStatus status_ = ExitStatus::ok;
    Totals totals_;
};

}  // namespace claimq::consume
