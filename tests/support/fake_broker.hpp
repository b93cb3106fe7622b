// claim.in and claim.dead as RabbitMQ keeps them: at most `prefetch` deliveries of a session are unacked; what is
// requeued, or unacked when its session ends, comes back at its old place flagged redelivered; a reject without requeue
// goes to claim.dead; the answer to a question for the depth overtakes deliveries; a tag that is not (any more) unacked
// on its channel is a protocol error and closes the channel.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_wire.hpp"
#include "witness.hpp"

namespace claimq::fake {

class FakeBroker : public Actor {
public:
    FakeBroker(FakeClock& clock, const Witness& witness) : clock_(clock), witness_(witness) { clock.add(*this); }

    // ---- for those who publish, look, and pull plugs

    int publish(std::string message_id, std::string body = "{}", Redelivered redelivered = Redelivered::no) {
        const int number = ++last_message_;
        ready_.emplace(number, Message{number, std::move(message_id), std::move(body), redelivered});
        return number;
    }
    [[nodiscard]] const std::map<int, Message>& ready() const noexcept { return ready_; }
    [[nodiscard]] const std::vector<Message>& acked() const noexcept { return acked_; }
    [[nodiscard]] const std::vector<Message>& dead() const noexcept { return dead_; }
    [[nodiscard]] std::vector<Message> unacked() const {
        std::vector<Message> all;
        for (const auto& session : sessions_)
            for (const auto& [tag, message] : session->unacked) all.push_back(message);
        return all;
    }
    [[nodiscard]] std::vector<Message> unacked_by(int process) const {
        std::vector<Message> all;
        for (const auto& session : sessions_)
            for (const auto& [tag, message] : session->unacked)
                if (session->process == process) all.push_back(message);
        return all;
    }
    [[nodiscard]] std::size_t most_unacked() const noexcept { return most_unacked_; }  // of one session, ever
    // What no consumer may do: a settlement of an unknown tag, a tag of a channel that is known to be gone.
    [[nodiscard]] const std::vector<std::string>& errors() const noexcept { return errors_; }
    void error(std::string text) { errors_.push_back(std::move(text)); }

    bool accepts_connections = true;
    bool frozen = false;            // alive for TCP, but says and takes nothing
    Milliseconds requeue_takes{0};  // a quorum queue: until a requeued message is delivered, and counted
    Latency latency;

    void lose_connections(const Loss& loss = {}) {
        for (const auto& session : std::vector(sessions_)) lose(*session, loss);
    }
    void lose_connections_of(int process, const Loss& loss) {
        for (const auto& session : std::vector(sessions_))
            if (session->process == process) lose(*session, loss);
    }
    // The broker ends them itself, e.g. since the queue was deleted; what it said before is still read.
    void close_channels(const std::string& reason) {
        for (const auto& session : std::vector(sessions_)) close(*session, reason);
    }

    // ---- for the channel

    [[nodiscard]] std::shared_ptr<Session> open(int process, int prefetch) {
        auto session = std::make_shared<Session>();
        session->process = process;
        session->prefetch = static_cast<std::size_t>(prefetch);
        sessions_.push_back(session);
        return session;
    }
    void write(Session& session, ToBroker frame) {
        if (!session.client_gone) session.to_broker.put(std::move(frame), clock_.now() + latency.to_broker());
    }
    void lose(Session& session, const Loss& loss) {
        if (!session.open || session.client_gone) return;
        session.client_gone = true;
        session.to_broker.keep_first(loss.written_that_arrive);
        loss.unread == Loss::Unread::gone ? session.to_client.keep_first(0)
                                          : session.to_client.keep_arrived(clock_.now());
        session.to_client.put(from_broker::Closed{loss.reason}, clock_.now());
        session.ends_at = clock_.now() + loss.noticed_after;
        if (loss.noticed_after > Milliseconds{0}) return;
        serve(session, never);
        end(session);
    }

    // ---- time

    [[nodiscard]] TimePoint next() const override {
        if (frozen) return never;
        auto first = somebody_has_room() ? next_ready_at() : never;
        for (const auto& session : sessions_)
            if (session->open) first = std::min({first, session->to_broker.next(), session->ends_at});
        return first;
    }
    void act(TimePoint now) override {
        if (frozen) return;
        for (const auto& session : std::vector(sessions_)) {
            serve(*session, now);
            if (session->open && session->ends_at <= now) end(*session);
        }
        deliver();
    }

private:
    void serve(Session& session, TimePoint now) {
        while (session.open) {
            const auto frame = session.to_broker.take(now);
            if (!frame) return;
            std::visit([&](const auto& one) { on(session, one); }, *frame);
            deliver();
        }
    }

    void on(Session& session, const to_broker::Settle& settle) {
        const auto at = session.unacked.find(settle.tag);
        if (at == session.unacked.end()) {
            errors_.push_back("406 PRECONDITION_FAILED - unknown delivery tag " + std::to_string(settle.tag));
            return close(session, errors_.back());
        }
        auto message = std::move(at->second);
        session.unacked.erase(at);
        const auto flag = message.redelivered;
        Happened happened{Effect::settled, session.process,   message.message_id,
                          message.number,  settle.settlement, flag};
        switch (settle.settlement) {
            case Settlement::ack: acked_.push_back(std::move(message)); break;
            case Settlement::dead_letter: dead_.push_back(std::move(message)); break;
            case Settlement::requeue:
            case Settlement::hand_back: put_back(std::move(message)); break;
        }
        witness_.saw(happened);
    }
    // The channel's process waits for the queue's answer alone (rabbit_amqqueue:stat is a call), so what the queue has
    // sent it to deliver meanwhile goes out after the answer.
    void on(Session& session, const to_broker::AskDepth&) {
        const auto ready =
            std::ranges::count_if(ready_, [now = clock_.now()](const auto& one) { return one.second.ready_at <= now; });
        const auto under_way = std::exchange(session.deliveries_under_way, 0);
        const auto overtaken = session.under_way_since == clock_.now() ? under_way : 0;
        if (session.client_gone) return;
        session.to_client.put_before(overtaken, from_broker::Depth{static_cast<std::uint64_t>(ready)},
                                     clock_.now() + latency.to_client());
    }
    void on(Session& session, const to_broker::Cancel&) {
        session.consuming = false;
        say(session, from_broker::CancelOk{});
        witness_.saw({Effect::cancelled, session.process});
    }

    void say(Session& session, FromBroker frame) {
        if (!session.client_gone) session.to_client.put(std::move(frame), clock_.now() + latency.to_client());
    }

    void close(Session& session, const std::string& reason) {
        if (!session.open) return;
        say(session, from_broker::Closed{reason});
        end(session);
    }

    // Its consumer is no more: what was unacked goes back to its place.
    void end(Session& session) {
        session.open = false;
        for (auto& [tag, message] : std::exchange(session.unacked, {})) {
            witness_.saw({Effect::taken_back, session.process, message.message_id, message.number});
            put_back(std::move(message));
        }
        std::erase_if(sessions_, [&](const auto& one) { return one.get() == &session; });
    }

    void put_back(Message message) {
        message.redelivered = Redelivered::yes;
        message.ready_at = clock_.now() + requeue_takes;
        ready_.emplace(message.number, std::move(message));
    }

    [[nodiscard]] static bool has_room(const Session& session) {
        return session.open && session.consuming && session.unacked.size() < session.prefetch;
    }
    [[nodiscard]] bool somebody_has_room() const {
        return std::ranges::any_of(sessions_, [](const auto& one) { return has_room(*one); });
    }
    [[nodiscard]] TimePoint next_ready_at() const {
        auto first = never;
        for (const auto& [number, message] : ready_) first = std::min(first, message.ready_at);
        return first;
    }
    // In the order of publishing, to each session with room in turn.
    void deliver() {
        for (auto at = ready_.begin(); at != ready_.end() && somebody_has_room();) {
            const bool is_ready = at->second.ready_at <= clock_.now();
            if (is_ready) deliver(at->second);
            at = is_ready ? ready_.erase(at) : std::next(at);
        }
    }
    void deliver(const Message& message) {
        while (!has_room(*sessions_[++turn_ % sessions_.size()])) continue;
        Session& session = *sessions_[turn_ % sessions_.size()];
        const auto tag = ++session.last_tag;
        session.unacked.emplace(tag, message);
        most_unacked_ = std::max(most_unacked_, session.unacked.size());
        if (std::exchange(session.under_way_since, clock_.now()) != clock_.now()) session.deliveries_under_way = 0;
        ++session.deliveries_under_way;
        say(session, from_broker::Deliver{tag, message});
        witness_.saw({Effect::handed_over, session.process, message.message_id, message.number, Settlement::ack,
                      message.redelivered});
    }

    FakeClock& clock_;
    const Witness& witness_;
    int last_message_ = 0;
    std::map<int, Message> ready_;
    std::vector<Message> acked_;
    std::vector<Message> dead_;
    std::vector<std::shared_ptr<Session>> sessions_;
    std::size_t turn_ = 0;  // whose turn it is to be given the next delivery
    std::size_t most_unacked_ = 0;
    std::vector<std::string> errors_;
};

}  // namespace claimq::fake
