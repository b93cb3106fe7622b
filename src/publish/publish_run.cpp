#include "publish/publish_run.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "claimq/failure.hpp"
#include "claimq/topology.hpp"

namespace claimq::publish {

namespace {

// "PRECONDITION_FAILED - message size 200000000 larger than configured max size 134217728" (rabbit_channel.erl,
// check_msg_size): the size of the claim that the channel was closed over. 0 when the text is no such text.
std::size_t named_size(const std::string& text) {
    constexpr std::string_view before = "message size ";
    const auto at = text.find(before);
    if (at == std::string::npos) return 0;
    std::size_t size = 0;
    std::from_chars(text.data() + at + before.size(), text.data() + text.size(), size);
    return size;
}

std::string seconds_text(Milliseconds time) {
    const auto text = std::to_string(time.count() / 1000) + "." + std::to_string(time.count() % 1000 / 100);
    return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + " s";
}

bool was_sent(const OutgoingClaim& claim) { return claim.first_sent != TimePoint{}; }

}  // namespace

ExitStatus PublishRun::run() {
    while (!given_up_) {
        if (!fetch() && source_ended_ && window_.empty()) break;
        if (!pending_.empty() && !channel_) connect();
        if (given_up_) break;
        send();
        if (channel_)
            for (auto& event : channel_->turn(waiter_.now())) handle(std::move(event));
        check_patience();
        report_.turned();
        wait();
    }
    if (channel_ && !given_up_) channel_->close();  // a broker that does not answer is not waited for again
    return status_;
}

// Is there a claim to send? Reads on until there is one, the input has to be waited for, or it has ended; a flood of
// bad input is cut, so that the connection is served and the errors are shown meanwhile.
bool PublishRun::fetch() {
    input_ = -1;
    for (int bad_inputs = 0; pending_.empty() && !source_ended_ && bad_inputs < most_bad_inputs;) {
        auto item = source_.next();
        if (auto* claim = std::get_if<OutgoingClaim>(&item)) {
            pending_.push_back(std::move(*claim));
        } else if (auto* bad = std::get_if<BadInput>(&item)) {
            ++bad_inputs;
            status_ = gravest(status_, bad->status);
            report_.bad_input(*bad);
        } else if (auto* not_yet = std::get_if<NotYet>(&item)) {
            input_ = not_yet->fd;
            return false;
        } else {
            source_ended_ = true;
        }
    }
    return !pending_.empty();
}

void PublishRun::connect() {
    try {
        channel_ = open_(was_connected_ ? reconnect_attempts : 1);
        was_connected_ = true;
    } catch (const Failure& failure) {
        give_up(outcome_is_unknown() ? ExitStatus::unknown : failure.status(), failure.what());
    }
}

void PublishRun::send() {
    while (channel_ && channel_->ready() && !blocked_since_ && fetch() &&
           window_.has_room_for(pending_.front().body.size())) {
        const auto& claim = window_.open(std::move(pending_.front()), waiter_.now());
        pending_.pop_front();
        channel_->publish(claim);
    }
}

void PublishRun::handle(PublishEvent event) {
    if (given_up_ || !channel_) return;  // an earlier event of this turn has ended the channel
    std::visit([this](const auto& one) { on(one); }, event);
}

void PublishRun::on(const publish_event::Confirmed& confirm) {
    const auto all_ended = window_.confirmed(confirm.tag, confirm.multiple, confirm.how);
    if (!all_ended.empty()) losses_ = 0;  // a confirm of nothing is no progress
    for (const auto& ended : all_ended) close(ended);
}

void PublishRun::on(const publish_event::Returned& returned) { window_.returned(returned.message_id, returned.reason); }

void PublishRun::on(const publish_event::Progress&) { window_.progressed(waiter_.now()); }

void PublishRun::on(const publish_event::Blocked& blocked) {
    blocked_since_ = waiter_.now();
    blocked_reason_ = blocked.reason;
    report_.notice("blocked by the broker: " + blocked.reason + "; waiting for up to " +
                   seconds_text(options_.blocked_timeout));
}

void PublishRun::on(const publish_event::Unblocked&) {
    blocked_since_.reset();
    window_.restart_waiting(waiter_.now());
    report_.notice("the broker takes claims again");
}

void PublishRun::on(const publish_event::ChannelClosed& closed) {
    channel_->close();
    channel_.reset();  // before a claim that it may still refer to is taken
    if (const auto size = named_size(closed.text); size > 0) {
        if (auto claim = window_.take_too_large(size))
            close({std::move(*claim), PublishResult::too_large, closed.text});
        return send_again();
    }
    switch (closed.code) {
        case 403: return give_up(ExitStatus::denied, "exchange '" + std::string(claim_exchange) + "': " + closed.text);
        case 404:
            return give_up(ExitStatus::unavailable,
                           "no exchange '" + std::string(claim_exchange) + "': " + closed.text);
        default: return give_up(ExitStatus::unknown, "the broker closed the channel: " + closed.text);
    }
}

void PublishRun::on(const publish_event::Lost& lost) {
    if (++losses_ > most_losses)
        return give_up(outcome_is_unknown() ? ExitStatus::unknown : ExitStatus::unavailable,
                       "the connection was lost again and again: " + lost.reason);
    report_.notice("connection lost (" + lost.reason + "); sending " + std::to_string(window_.size()) +
                   " unconfirmed claims again");
    send_again();
}

// The same message_id again: the consumer sees a duplicate at worst.
void PublishRun::send_again() {
    channel_.reset();
    blocked_since_.reset();
    auto open = window_.take_open();
    pending_.insert(pending_.begin(), std::make_move_iterator(open.begin()), std::make_move_iterator(open.end()));
}

// Something was sent, and what became of it cannot be learned any more.
bool PublishRun::outcome_is_unknown() const { return !window_.empty() || std::ranges::any_of(pending_, was_sent); }

void PublishRun::check_patience() {
    if (given_up_ || !channel_) return;
    const auto now = waiter_.now();
    if (blocked_since_) {
        if (now - *blocked_since_ >= options_.blocked_timeout)
            give_up(ExitStatus::unknown, "still blocked by the broker after " + seconds_text(options_.blocked_timeout) +
                                             ": " + blocked_reason_);
    } else if (const auto since = window_.waiting_since(); since && now - *since >= options_.confirm_timeout) {
        give_up(ExitStatus::unknown, "no confirm within " + seconds_text(options_.confirm_timeout));
    }
}

void PublishRun::give_up(ExitStatus status, const std::string& why) {
    given_up_ = true;
    channel_.reset();
    status_ = gravest(status_, status);
    report_.trouble(source_ended_ ? why : why + "; what follows in the input is not sent");
    for (auto& claim : window_.take_open())
        report_.closed({std::move(claim), PublishResult::unknown, why}, waiter_.now());
    for (auto& claim : pending_) {
        const auto result = was_sent(claim) ? PublishResult::unknown : PublishResult::not_sent;
        report_.closed({std::move(claim), result, why}, waiter_.now());
    }
    pending_.clear();
}

void PublishRun::close(const ClosedPublish& publish) {
    if (publish.result != PublishResult::confirmed) status_ = gravest(status_, ExitStatus::refused);
    report_.closed(publish, waiter_.now());
}

// Can the next turn read on, connect, send, or end, without anything happening first?
bool PublishRun::may_go_on() const {
    if (pending_.empty()) return input_ < 0 && (!source_ended_ || window_.empty());
    if (!channel_) return true;
    return channel_->ready() && !blocked_since_ && window_.has_room_for(pending_.front().body.size());
}

void PublishRun::wait() {
    if (given_up_ || may_go_on()) return;
    std::array<Watch, 3> watches{};
    if (channel_) watches[0] = channel_->watch();
    if (input_ >= 0 && pending_.empty()) watches[1] = {input_, POLLIN, TimePoint::max()};
    if (blocked_since_)
        watches[2].due = *blocked_since_ + options_.blocked_timeout;
    else if (const auto since = window_.waiting_since())
        watches[2].due = *since + options_.confirm_timeout;
    waiter_.wait(watches);
}

}  // namespace claimq::publish
