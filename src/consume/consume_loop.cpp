#include "consume/consume_loop.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "claimq/claim.hpp"

namespace claimq::consume {

namespace {

constexpr Milliseconds settling_time{2'000};      // after the last call: recording, settling, cancel-ok
constexpr Milliseconds end_bound{4'500};          // after the last call: settling and closing
constexpr Milliseconds stall_worth_telling{100};  // a turn takes well below 1 ms, but a commit may take seconds
constexpr Milliseconds depth_interval{20};
// A quorum queue counts what was requeued only a moment later (3.10: 0.1 s), so it is not asked right after one.
constexpr Milliseconds requeue_shows_after{500};
// Consumers on one store meet at their commits; only what lasts is worth a line.
constexpr Milliseconds outage_worth_telling{5'000};

// What the delivery is known by: its message_id, else its body's guid, else nothing.
std::string id_of(const Delivery& delivery) {
    if (!delivery.message_id.empty()) return delivery.message_id;
    auto id = claim_id(delivery.body);
    auto* claim = std::get_if<ClaimId>(&id);
    return claim != nullptr ? std::move(claim->guid) : std::string{};
}

}  // namespace

ConsumeLoop::ConsumeLoop(DeliveryChannel& channel, Inbox& inbox, ClaimsApi& api, Waiter& waiter, StopRequest& stop,
                         Log& log, Options options)
    : channel_(channel),
      inbox_(inbox),
      api_(api),
      waiter_(waiter),
      stop_(stop),
      log_(log),
      options_(std::move(options)),
      now_(waiter.now()),
      bound_(options_.concurrency, options_.timeout),
      retries_(options_.prefetch),
      deadline_(options_.max_time ? now_ + *options_.max_time : TimePoint::max()) {}

ExitStatus ConsumeLoop::run() {
    const auto began = now_;
    while (true) {
        now_ = waiter_.now();
        turn();
        if (phase_ == Phase::over) break;
        wait();
    }
    totals_.took = std::chrono::duration_cast<Milliseconds>(now_ - began);
    return status_;
}

void ConsumeLoop::turn() {
    for (auto& event : channel_.turn(now_)) std::visit([this](auto& one) { on(one); }, event);
    auto calls = api_.turn(now_);
    const int were_in_flight = in_flight_;
    for (auto& call : calls) {
        adapt(call, were_in_flight);
        finished(call);
    }
    for (auto& event : inbox_.turn(now_)) std::visit([this](auto& one) { on(one); }, event);
    for (const auto ticket : retries_.take_due(now_)) release_and_settle(ticket, Settlement::requeue);
    check_end();
    start_calls();
    ask_whether_empty();
    tell_of_store_trouble();
    channel_.flush(now_);
    drain();
    log_.flush();
    const auto took = std::chrono::duration_cast<Milliseconds>(waiter_.now() - now_);
    if (took >= stall_worth_telling) api_.stalled(took);
}

void ConsumeLoop::wait() {
    Watch own;
    own.due = std::min(retries_.next_due(), phase_ == Phase::consuming ? deadline_ : over_by_);
    if (phase_ == Phase::draining && now_ < drained_by_) own.due = std::min(own.due, drained_by_);
    if (wants_depth()) own.due = std::min(own.due, ask_depth_at_);
    waiter_.wait(std::array{channel_.watch(), inbox_.watch(), api_.watch(), stop_.watch(), own});
}

// ---- what the broker says

void ConsumeLoop::on(channel_event::Consuming&) { log_.say(LogLevel::debug, "consuming from claim.in"); }

void ConsumeLoop::on(channel_event::Delivered& event) {
    delivered_since_asked_ = true;
    empty_answers_ = 0;
    auto id = id_of(event.delivery);
    const auto ticket = in_hand_.add(std::move(event.delivery), std::move(id));
    auto& held = *in_hand_.find(ticket);
    if (held.id.empty()) {
        held.result = {Outcome::unidentified, 0, "neither message_id nor guid", Milliseconds{0}};
        return settle(ticket, held, claimq::settle(Outcome::unidentified, held.delivery.redelivered));
    }
    inbox_.admit(ticket, held.id, held.delivery.body);
}

// RabbitMQ's answer overtakes deliveries that are on their way to the channel (rabbit_channel waits for the queue's
// answer alone); they come before the answer to a second question. What was delivered since the question may have been
// requeued after the broker had counted.
void ConsumeLoop::on(channel_event::Depth& depth) {
    depth_asked_ = false;
    empty_answers_ = depth.ready == 0 && !delivered_since_asked_ ? empty_answers_ + 1 : 0;
    if (empty_answers_ == 2) return end(ExitStatus::ok);
    if (empty_answers_ == 0) ask_depth_at_ = std::max(ask_depth_at_, now_ + depth_interval);
}

void ConsumeLoop::on(channel_event::Cancelled&) { cancelled_ = true; }

void ConsumeLoop::on(channel_event::Notice& notice) { log_.warning(notice.text); }

void ConsumeLoop::on(channel_event::Unreachable& unreachable) {
    log_.warning(unreachable.reason + "; trying again");
    trouble_ = std::move(unreachable.reason);
}

// What was not called yet will be delivered again. What is being called goes on: its outcome is recorded, and the
// redelivery is settled by the record.
void ConsumeLoop::on(channel_event::Lost& lost) {
    log_.warning("connection to the broker lost: " + lost.reason);
    trouble_ = lost.reason;
    depth_asked_ = false;
    empty_answers_ = 0;
    if (phase_ == Phase::draining && !in_hand_.empty()) status_ = gravest(status_, ExitStatus::unavailable);
    std::vector<Ticket> dropped;
    for (auto& [ticket, held] : in_hand_) {
        held.tag_is_void = true;
        if (held.stage != Stage::calling && held.stage != Stage::recording) dropped.push_back(ticket);
    }
    for (const auto ticket : dropped) {
        inbox_.release(ticket);
        in_hand_.remove(ticket);
    }
    ready_.clear();
    static_cast<void>(retries_.take_all());  // dropped above
}

void ConsumeLoop::on(channel_event::Ended& ended) {
    log_.error(ended.reason);
    end(ended.status);
}

// ---- what the inbox says

void ConsumeLoop::on(inbox_event::Admitted& admitted) {
    auto* held = in_hand_.find(admitted.ticket);
    if (held == nullptr) return;
    switch (admitted.verdict) {
        case Admission::fresh:
            held->stage = Stage::ready;
            ready_.push_back(admitted.ticket);
            return;
        case Admission::held: held->stage = Stage::held; return;
        case Admission::done_other_body:
            ++totals_.conflicts;
            log_.say(LogLevel::warning, "same id, other body: kept in the store, not called", {{"id", held->id}});
            break;
        case Admission::done: break;
    }
    held->result.outcome = Outcome::duplicate;
    settle(admitted.ticket, *held, claimq::settle(Outcome::duplicate, held->delivery.redelivered));
}

void ConsumeLoop::on(inbox_event::Recorded& recorded) {
    if (auto* held = in_hand_.find(recorded.ticket))
        settle(recorded.ticket, *held, claimq::settle(held->result.outcome, held->delivery.redelivered));
}

void ConsumeLoop::on(inbox_event::Down& down) {
    store_is_down_ = true;
    store_trouble_ = down.reason;
    tell_store_trouble_at_ = now_ + outage_worth_telling;
}

void ConsumeLoop::on(inbox_event::Up&) {
    store_is_down_ = false;
    if (store_trouble_.empty()) log_.warning("the store works again");
    store_trouble_.clear();
}

void ConsumeLoop::tell_of_store_trouble() {
    if (!store_is_down_ || store_trouble_.empty() || now_ < tell_store_trouble_at_) return;
    log_.warning(store_trouble_ + "; no call is started until it works again");
    store_trouble_.clear();
}

void ConsumeLoop::on(inbox_event::Broken& broken) {
    log_.error(broken.reason);
    calls_are_over_ = true;
    end(ExitStatus::store);
    over_by_ = now_;  // no answer could be recorded, so none is worth waiting for
}

// ---- calls

void ConsumeLoop::start_calls() {
    while (!ready_.empty() && may_call() && in_flight_ < bound_.value()) {
        const auto ticket = ready_.front();
        ready_.pop_front();
        auto* held = in_hand_.find(ticket);
        if (held == nullptr) continue;
        held->stage = Stage::calling;
        ++in_flight_;
        api_.start({ticket, held->id, held->delivery.body, held->delivery.redelivered});
    }
    // At the end what finds no room is handed back; what does, because it came before cancel-ok, has been called above.
    if (phase_ != Phase::draining) return;
    if (cancelled_) calls_are_over_ = true;
    for (const auto ticket : std::exchange(ready_, {})) release_and_settle(ticket, Settlement::hand_back);
}

bool ConsumeLoop::may_call() const {
    if (store_is_down_ || calls_are_over_) return false;
    // Else it might not be finished and recorded in time. `now_` may be seconds old: a commit can take that long.
    return phase_ == Phase::consuming || waiter_.now() + options_.timeout + settling_time / 2 < over_by_;
}

void ConsumeLoop::adapt(const FinishedCall& call, int were_in_flight) {
    if (std::holds_alternative<Answered>(call.answer)) bound_.answered(call.took);
    const auto* none = std::get_if<NotAnswered>(&call.answer);
    if (none != nullptr && none->how == CallFailure::timed_out) bound_.timed_out(were_in_flight);
}

void ConsumeLoop::finished(FinishedCall& call) {
    --in_flight_;
    auto* held = in_hand_.find(call.ticket);
    if (held == nullptr) return;
    std::optional<std::chrono::seconds> retry_after;
    if (auto* fault = std::get_if<OwnFault>(&call.answer)) {
        // No answer, so nothing is settled: the delivery goes back when the connection ends.
        log_.error("call for '" + held->id + "': " + fault->reason);
        inbox_.release(call.ticket);
        in_hand_.remove(call.ticket);
        calls_are_over_ = true;
        return end(ExitStatus::os_error);
    }
    if (auto* answered = std::get_if<Answered>(&call.answer)) {
        retry_after = answered->retry_after;
        held->result = {classify(*answered, options_.policy), answered->status, std::move(answered->reason), call.took};
    } else {
        auto& none = std::get<NotAnswered>(call.answer);
        held->result = {classify(none), 0, std::string(name(none.how)) + ": " + none.reason, call.took};
    }
    decided(call.ticket, *held, retry_after);
}

void ConsumeLoop::decided(Ticket ticket, Held& held, std::optional<std::chrono::seconds> retry_after) {
    const auto outcome = held.result.outcome;
    const auto settlement = claimq::settle(outcome, held.delivery.redelivered);
    if (outcome == Outcome::stopped) {
        log_.error("the claims system answered " + std::to_string(held.result.status) + ", which --stop-on names");
        calls_are_over_ = true;
        end(ExitStatus::unavailable);
    }
    if (held.tag_is_void && outcome != Outcome::accepted) {
        inbox_.release(ticket);  // it is delivered again, and then its answer can be settled
        return in_hand_.remove(ticket);
    }
    if (settlement == Settlement::requeue) return requeue(ticket, held, retry_after);
    held.stage = Stage::recording;
    inbox_.record({ticket, outcome, held.result.status, held.result.reason});
}

void ConsumeLoop::requeue(Ticket ticket, Held& held, std::optional<std::chrono::seconds> retry_after) {
    const auto wait = retry_wait(options_.retry_delay, retry_after);
    if (wait.count() == 0 || phase_ != Phase::consuming) return release_and_settle(ticket, Settlement::requeue);
    held.stage = Stage::waiting;
    if (const auto early = retries_.add(ticket, now_ + wait)) release_and_settle(*early, Settlement::requeue);
}

// ---- settling

void ConsumeLoop::settle(Ticket ticket, Held& held, Settlement settlement) {
    const bool handed_back = settlement == Settlement::hand_back;
    if (!handed_back) totals_.count(held.result.outcome, settlement);
    if (!held.tag_is_void) channel_.settle(held.delivery.tag, settlement);
    if (settlement == Settlement::requeue) ask_depth_at_ = now_ + requeue_shows_after;
    // The claims system's own words stay in the store: they may hold a piece of the claim.
    const auto reason = held.result.status == 0 ? std::string_view(held.result.reason) : std::string_view{};
    log_.say(handed_back ? LogLevel::debug : LogLevel::info, handed_back ? "handed back" : name(held.result.outcome),
             {{"id", held.id},
              {"status", held.result.status},
              {"settlement", held.tag_is_void ? std::string_view("none") : name(settlement)},
              {"redelivered", held.delivery.redelivered == Redelivered::yes},
              {"ms", held.result.took.count()},
              {"reason", reason}});
    in_hand_.remove(ticket);
}

void ConsumeLoop::release_and_settle(Ticket ticket, Settlement settlement) {
    auto* held = in_hand_.find(ticket);
    if (held == nullptr) return;
    inbox_.release(ticket);
    settle(ticket, *held, settlement);
}

// ---- the end

bool ConsumeLoop::wants_depth() const {
    return options_.until_empty && phase_ == Phase::consuming && in_hand_.empty() && !depth_asked_ &&
           channel_.connected();
}

void ConsumeLoop::ask_whether_empty() {
    if (!wants_depth() || now_ < ask_depth_at_) return;
    channel_.ask_depth();
    depth_asked_ = true;
    delivered_since_asked_ = false;
}

void ConsumeLoop::check_end() {
    const bool stopped = stop_.requested();  // asked at the end, too: a signal that is not taken keeps waking the loop
    if (phase_ != Phase::consuming || (now_ < deadline_ && !stopped)) return;
    if (channel_.connected()) return end(ExitStatus::ok);
    log_.error("no connection to the broker at the end: " + (trouble_.empty() ? "it has not answered yet" : trouble_));
    end(ExitStatus::unavailable);
}

void ConsumeLoop::end(ExitStatus status) {
    status_ = gravest(status_, status);
    if (phase_ != Phase::consuming) return;
    phase_ = Phase::draining;
    drained_by_ = waiter_.now() + options_.timeout;  // which this turn's calls need in full, see may_call()
    over_by_ = drained_by_ + settling_time;
    channel_.cancel();
    channel_.flush(now_);  // before anything goes back, else the broker would deliver it to us again
    options_.on_ending(options_.timeout + end_bound);
    for (const auto ticket : retries_.take_all()) release_and_settle(ticket, Settlement::requeue);
}

void ConsumeLoop::drain() {
    if (phase_ != Phase::draining) return;
    if (now_ >= drained_by_) {
        std::vector<Ticket> others_hold;
        for (auto& [ticket, held] : in_hand_)
            if (held.stage == Stage::held || held.stage == Stage::asked) others_hold.push_back(ticket);
        for (const auto ticket : others_hold) release_and_settle(ticket, Settlement::hand_back);
        channel_.flush(now_);
    }
    const bool all_settled = in_hand_.empty() && channel_.flushed();
    const bool nothing_comes = cancelled_ || !channel_.connected();
    if (all_settled && nothing_comes)
        phase_ = Phase::over;
    else if (now_ >= over_by_)
        give_up();
}

// What is left in hand goes back to its queue when the connection ends.
void ConsumeLoop::give_up() {
    phase_ = Phase::over;
    const auto unrecorded =
        std::ranges::count_if(in_hand_, [](const auto& one) { return one.second.stage == Stage::recording; });
    if (unrecorded == 0) return;
    log_.error("the store took no record of " + std::to_string(unrecorded) + " answered claims in time");
    status_ = gravest(status_, ExitStatus::store);
}

}  // namespace claimq::consume
