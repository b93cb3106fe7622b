// Mistakes that a consumer could make, put around the seams of one that does not make them: tests of the checker.
#pragma once
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "fake_world.hpp"

namespace claimq::sweep {

enum class Mutation {
    none,
    acks_before_it_records,       // the order of record and ack swapped
    takes_no_locks,               // on ids in flight
    looks_before_it_locks,        // the read snapshot opened before the lock
    uses_old_tags,                // on a new channel
    drops_answers_after_a_stall,  // the deadline looked at before the socket
    drops_answers_after_a_loss,   // of the connection to the broker
    calls_what_is_done,           // the redelivery of what was recorded
    acks_what_is_rejected,
    believes_in_first_deliveries,  // whatever the broker's flag says
    never_gives_ids_back,
};

// The order of record and ack swapped: it is told Recorded at once, the record is handed in a turn later.
class AcksBeforeItRecords : public Inbox {
public:
    explicit AcksBeforeItRecords(Inbox& inner) : inner_(inner) {}
    void admit(Ticket ticket, std::string_view id, std::string_view body) override { inner_.admit(ticket, id, body); }
    void record(Record record) override { told_.push_back(std::move(record)); }
    void release(Ticket ticket) override { inner_.release(ticket); }
    [[nodiscard]] std::vector<InboxEvent> turn(TimePoint now) override {
        for (auto& record : std::exchange(late_, {})) inner_.record(std::move(record));
        auto events = inner_.turn(now);
        for (const auto& record : told_) events.emplace_back(inbox_event::Recorded{record.ticket});
        late_ = std::exchange(told_, {});
        return events;
    }
    [[nodiscard]] Watch watch() const override { return late_.empty() ? inner_.watch() : Watch{-1, 0, TimePoint{}}; }

private:
    Inbox& inner_;
    std::vector<Record> told_;
    std::vector<Record> late_;
};

// One that calls what is done, or never gives an id back.
class ForgetfulInbox : public Inbox {
public:
    ForgetfulInbox(Inbox& inner, Mutation how) : inner_(inner), how_(how) {}
    void admit(Ticket ticket, std::string_view id, std::string_view body) override { inner_.admit(ticket, id, body); }
    void record(Record record) override {
        if (invented_.contains(record.ticket))
            told_.push_back(record.ticket);
        else
            inner_.record(std::move(record));
    }
    void release(Ticket ticket) override {
        if (how_ != Mutation::never_gives_ids_back) inner_.release(ticket);
    }
    [[nodiscard]] std::vector<InboxEvent> turn(TimePoint now) override {
        auto events = inner_.turn(now);
        for (const auto ticket : std::exchange(told_, {})) events.emplace_back(inbox_event::Recorded{ticket});
        if (how_ != Mutation::calls_what_is_done) return events;
        for (auto& event : events) {
            auto* admitted = std::get_if<inbox_event::Admitted>(&event);
            if (admitted == nullptr || admitted->verdict != Admission::done) continue;
            admitted->verdict = Admission::fresh;
            invented_.insert(admitted->ticket);
        }
        return events;
    }
    [[nodiscard]] Watch watch() const override { return inner_.watch(); }

private:
    Inbox& inner_;
    Mutation how_;
    std::set<Ticket> invented_;
    std::vector<Ticket> told_;
};

class CarelessChannel : public DeliveryChannel {
public:
    CarelessChannel(DeliveryChannel& inner, Mutation how) : inner_(inner), how_(how) {}
    [[nodiscard]] std::vector<ChannelEvent> turn(TimePoint now) override {
        auto events = inner_.turn(now);
        for (auto& event : events) {
            auto* delivered = std::get_if<channel_event::Delivered>(&event);
            if (delivered == nullptr) continue;
            channel_ = delivered->delivery.tag.channel;
            if (how_ == Mutation::believes_in_first_deliveries) delivered->delivery.redelivered = Redelivered::no;
        }
        const auto lost = std::erase_if(events, [this](const auto& event) {
            return how_ == Mutation::uses_old_tags && std::holds_alternative<channel_event::Lost>(event);
        });
        losses += static_cast<int>(lost) + static_cast<int>(std::ranges::count_if(events, [](const auto& event) {
                      return std::holds_alternative<channel_event::Lost>(event);
                  }));
        return events;
    }
    void settle(DeliveryTag tag, Settlement settlement) override {
        if (how_ == Mutation::acks_what_is_rejected && settlement == Settlement::dead_letter)
            settlement = Settlement::ack;
        if (how_ == Mutation::uses_old_tags) tag.channel = channel_;
        inner_.settle(tag, settlement);
    }
    void flush(TimePoint now) override { inner_.flush(now); }
    [[nodiscard]] bool flushed() const override { return inner_.flushed(); }
    void ask_depth() override { inner_.ask_depth(); }
    void cancel() override { inner_.cancel(); }
    [[nodiscard]] bool connected() const override { return inner_.connected(); }
    [[nodiscard]] Watch watch() const override { return inner_.watch(); }

    int losses = 0;

private:
    DeliveryChannel& inner_;
    Mutation how_;
    std::uint64_t channel_ = 0;
};

// Answers to calls that were begun on a connection that is lost are thrown away.
class DropsAnswersAfterALoss : public ClaimsApi {
public:
    DropsAnswersAfterALoss(ClaimsApi& inner, const CarelessChannel& channel) : inner_(inner), channel_(channel) {}
    void start(const Call& call) override {
        losses_then_[call.ticket] = channel_.losses;
        inner_.start(call);
    }
    [[nodiscard]] std::vector<FinishedCall> turn(TimePoint now) override {
        auto finished = inner_.turn(now);
        for (auto& call : finished)
            if (losses_then_.at(call.ticket) != channel_.losses) call.answer = NotAnswered{CallFailure::cut, "dropped"};
        return finished;
    }
    void stalled(Milliseconds time) override { inner_.stalled(time); }
    [[nodiscard]] Watch watch() const override { return inner_.watch(); }

private:
    ClaimsApi& inner_;
    const CarelessChannel& channel_;
    std::map<Ticket, int> losses_then_;
};

// The seams of one process, with the mistake in its place.
class Decorated {
public:
    Decorated(fake::Seams& seams, Mutation mutation)
        : mutation_(mutation),
          seams_(seams),
          channel_(seams.channel, mutation),
          api_(seams.api, channel_),
          swapped_(seams.inbox),
          forgetful_(seams.inbox, mutation) {
        if (mutation == Mutation::takes_no_locks) seams.inbox.locks = fake::FakeInbox::Locks::left_out;
        if (mutation == Mutation::looks_before_it_locks)
            seams.inbox.snapshot = fake::FakeInbox::Snapshot::before_the_locks;
        if (mutation == Mutation::drops_answers_after_a_stall)
            seams.api.looks_first_at = fake::FakeClaimsApi::LooksFirstAt::clock;
    }

    [[nodiscard]] DeliveryChannel& channel() {
        if (mutation_ == Mutation::none) return seams_.channel;
        return channel_;
    }
    [[nodiscard]] Inbox& inbox() {
        if (mutation_ == Mutation::none) return seams_.inbox;
        if (mutation_ == Mutation::acks_before_it_records) return swapped_;
        return forgetful_;
    }
    [[nodiscard]] ClaimsApi& api() {
        if (mutation_ == Mutation::drops_answers_after_a_loss) return api_;
        return seams_.api;
    }

private:
    Mutation mutation_;
    fake::Seams& seams_;
    CarelessChannel channel_;
    DropsAnswersAfterALoss api_;
    AcksBeforeItRecords swapped_;
    ForgetfulInbox forgetful_;
};

}  // namespace claimq::sweep
