// A consumer's inbox as SqliteInbox behaves, on the fake store: locks first, then one look at what is processed; all
// records of a turn in one commit, wholly or not at all; an id is freed after the commit and not before.
#pragma once
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "claimq/inbox.hpp"
#include "fake_store.hpp"
#include "witness.hpp"

namespace claimq::fake {

class FakeInbox : public Inbox {
public:
    FakeInbox(FakeClock& clock, FakeStore& store, const Witness& witness, const Process& process)
        : clock_(clock), store_(store), witness_(witness), process_(process) {}
    FakeInbox(const FakeInbox&) = delete;
    FakeInbox& operator=(const FakeInbox&) = delete;
    ~FakeInbox() override {
        std::erase_if(store_.locks, [this](const auto& lock) { return lock.second == process_.number(); });
    }

    // For tests of the tests.
    enum class Locks { taken, left_out } locks = Locks::taken;
    enum class Snapshot { after_the_locks, before_the_locks } snapshot = Snapshot::after_the_locks;

    void admit(Ticket ticket, std::string_view id, std::string_view body) override {
        process_.step();
        if (!claims_.emplace(ticket, Claim{std::string(id), body, Stage::asked}).second)
            throw std::logic_error("a ticket was admitted twice");
        queues_[std::string(id)].push_back(ticket);
        ask_at_once_ = true;
    }

    void record(Record record) override {
        process_.step();
        auto& claim = claims_.at(record.ticket);
        if (claim.stage != Stage::fresh) throw std::logic_error("recorded what was not fresh");
        claim.stage = Stage::recording;
        records_.push_back(std::move(record));
    }

    void release(Ticket ticket) override {
        process_.step();
        const auto at = claims_.find(ticket);
        if (at == claims_.end() || at->second.stage == Stage::recording) return;
        if (at->second.stage == Stage::keeping_body)
            std::erase(other_bodies_, ticket);
        else
            leave_queue(at->first);
        claims_.erase(at);
    }

    [[nodiscard]] std::vector<InboxEvent> turn(TimePoint now) override {
        process_.step();
        if (!store_.answers || broken_) return {};
        if (store_.broken) {
            break_for_good("was deleted or replaced");
        } else {
            const bool retries = !busy_since_ || now >= try_again_at_;
            if (retries && (busy_since_ || !records_.empty() || !other_bodies_.empty())) commit(now);
            if (!down_ && !broken_) ask(now);
        }
        return std::exchange(events_, {});
    }

    [[nodiscard]] Watch watch() const override {
        if (!store_.answers || broken_) return {};
        if (busy_since_) return {-1, 0, try_again_at_};
        if (ask_at_once_ || !records_.empty() || !other_bodies_.empty()) return {-1, 0, TimePoint{}};
        return {-1, 0, held_elsewhere_ ? ask_again_at_ : never};
    }

private:
    enum class Stage { asked, told_held, fresh, recording, keeping_body };
    struct Claim {
        std::string id;
        std::string_view body;  // lent until it is answered
        Stage stage;
        std::string own_body{};
    };
    using Processed = std::map<std::string, std::string>;
    static constexpr Milliseconds asked_again_after{100};
    static constexpr Milliseconds down_after{500};
    static constexpr Milliseconds gives_up_after{60'000};
    static constexpr Milliseconds pause{25};

    // ---- commit

    void commit(TimePoint now) {
        take_time(std::exchange(store_.commit_takes, Milliseconds{0}));
        if (store_.broken) return break_for_good("disk full");
        if (clock_.now() < store_.busy_until) return is_busy(now);
        busy_since_.reset();
        if (std::exchange(down_, false)) events_.emplace_back(inbox_event::Up{});
        if (records_.empty() && other_bodies_.empty()) return;
        ++store_.commits;
        const auto records = std::exchange(records_, {});
        const auto other_bodies = std::exchange(other_bodies_, {});
        for (const auto& record : records) write(record);
        for (const auto ticket : other_bodies) keep_body(claims_.at(ticket));
        process_.step();
        for (const auto& record : records) {
            free(record.ticket);
            events_.emplace_back(inbox_event::Recorded{record.ticket});
        }
        for (const auto ticket : other_bodies) {
            claims_.erase(ticket);
            events_.emplace_back(inbox_event::Admitted{ticket, Admission::done_other_body});
        }
    }

    void take_time(Milliseconds time) {
        if (time == Milliseconds{0}) return;
        process_.sleep ? process_.sleep(time) : clock_.advance(time);
        process_.step();
    }

    void write(const Record& record) {
        const auto& claim = claims_.at(record.ticket);
        if (record.outcome == Outcome::accepted)
            store_.processed.emplace(claim.id, claim.own_body);
        else
            store_.dead_letters.push_back({claim.id, record.outcome, record.status, record.reason});
        Happened happened{Effect::recorded, process_.number(), claim.id};
        happened.outcome = record.outcome;
        witness_.saw(happened);
    }

    void keep_body(const Claim& claim) {
        store_.other_bodies.emplace(claim.id, claim.body);
        witness_.saw({Effect::body_kept, process_.number(), claim.id});
    }

    void free(Ticket ticket) {
        leave_queue(ticket);
        claims_.erase(ticket);
    }

    void is_busy(TimePoint now) {
        if (!busy_since_) busy_since_ = now;
        try_again_at_ = now + pause;
        if (now - *busy_since_ >= gives_up_after) return break_for_good("has been busy for 60 s");
        if (down_ || now - *busy_since_ < down_after) return;
        down_ = true;
        events_.emplace_back(inbox_event::Down{"store is busy"});
    }

    void break_for_good(const std::string& reason) {
        broken_ = true;
        events_.emplace_back(inbox_event::Broken{reason});
    }

    // ---- admission

    void ask(TimePoint now) {
        const bool again = held_elsewhere_ && now >= ask_again_at_;
        if (!std::exchange(ask_at_once_, false) && !again) return;
        std::optional<Processed> snapshot_before;
        if (snapshot == Snapshot::before_the_locks) snapshot_before = store_.processed;
        process_.step();
        const auto ours = take_locks();
        held_elsewhere_ = ours.size() < queues_.size();
        if (held_elsewhere_) ask_again_at_ = now + asked_again_after;
        const auto& seen = snapshot_before ? *snapshot_before : store_.processed;
        for (const auto& id : ours) look_up(id, seen);
        for (auto& [ticket, claim] : claims_) {
            if (claim.stage != Stage::asked) continue;
            claim.stage = Stage::told_held;
            events_.emplace_back(inbox_event::Admitted{ticket, Admission::held});
        }
        process_.step();
    }

    [[nodiscard]] std::vector<std::string> take_locks() {
        std::vector<std::string> ours;
        for (const auto& [ticket, claim] : claims_) {  // in the order of arrival
            const auto queue = queues_.find(claim.id);
            if (queue == queues_.end() || queue->second.front() != ticket) continue;
            const auto [at, is_new] = store_.locks.emplace(claim.id, process_.number());
            if (at->second != process_.number() && locks == Locks::taken) continue;
            ours.push_back(claim.id);
            if (!is_new) continue;
            witness_.saw({Effect::lock_taken, process_.number(), claim.id});
            process_.step();
        }
        return ours;
    }

    void look_up(const std::string& id, const Processed& seen) {
        for (const auto ticket : std::vector(queues_.at(id))) {
            auto& claim = claims_.at(ticket);
            if (claim.stage == Stage::fresh || claim.stage == Stage::recording) return;
            const auto at = seen.find(id);
            if (at == seen.end()) {
                claim.stage = Stage::fresh;
                claim.own_body = claim.body;
                events_.emplace_back(inbox_event::Admitted{ticket, Admission::fresh});
                return;  // the others wait for what becomes of this one
            }
            if (at->second == claim.body) {
                free(ticket);
                events_.emplace_back(inbox_event::Admitted{ticket, Admission::done});
            } else {
                leave_queue(ticket);
                claim.stage = Stage::keeping_body;
                other_bodies_.push_back(ticket);
            }
        }
    }

    // After the last one the id is free, else it is the next one's turn under the same lock.
    void leave_queue(Ticket ticket) {
        const auto id = claims_.at(ticket).id;
        const auto at = queues_.find(id);
        std::erase(at->second, ticket);
        ask_at_once_ = ask_at_once_ || !at->second.empty();
        if (!at->second.empty()) return;
        queues_.erase(at);
        const auto lock = store_.locks.find(id);
        if (lock != store_.locks.end() && lock->second == process_.number()) store_.locks.erase(lock);
    }

    FakeClock& clock_;
    FakeStore& store_;
    const Witness& witness_;
    const Process& process_;
    std::map<Ticket, Claim> claims_;
    std::map<std::string, std::vector<Ticket>> queues_;  // its first has the id or asks for it
    std::vector<Record> records_;
    std::vector<Ticket> other_bodies_;
    bool ask_at_once_ = false;
    bool held_elsewhere_ = false;
    TimePoint ask_again_at_{};
    std::optional<TimePoint> busy_since_;
    TimePoint try_again_at_{};
    bool down_ = false;
    bool broken_ = false;
    std::vector<InboxEvent> events_;
};

}  // namespace claimq::fake
