// The claims system, which lives on whoever calls it, and a consumer's way to it.
#pragma once
#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claimq/claims_api.hpp"
#include "fake_clock.hpp"
#include "witness.hpp"

namespace claimq::fake {

// What becomes of one call.
struct CallPlan {
    Answer answer = Answered{201, {}, {}};
    Milliseconds answer_after{10};  // longer than the timeout: the caller sees a timeout
    std::optional<Milliseconds> processed_after = Milliseconds{5};  // nothing: never
};

[[nodiscard]] inline CallPlan answers(int status, Milliseconds after = Milliseconds{10},
                                      std::optional<std::chrono::seconds> retry_after = {}) {
    CallPlan plan{Answered{status, retry_after, {}}, after, {}};
    if (status / 100 == 2) plan.processed_after = after / 2;
    return plan;
}
[[nodiscard]] inline CallPlan fails(CallFailure how, Milliseconds after = Milliseconds{10}) {
    return {NotAnswered{how, "as planned"}, after, {}};
}
[[nodiscard]] inline CallPlan own_fault() { return {OwnFault{"no descriptors"}, Milliseconds{0}, {}}; }
[[nodiscard]] inline CallPlan hangs() { return {Answered{201, {}, {}}, std::chrono::hours{24 * 365}, {}}; }

// Does the request reach the claims system at all?
[[nodiscard]] inline bool reaches(const Answer& answer) {
    if (std::holds_alternative<OwnFault>(answer)) return false;
    const auto* none = std::get_if<NotAnswered>(&answer);
    return none == nullptr || (none->how != CallFailure::refused && none->how != CallFailure::unresolved);
}

struct Request {
    std::string id;
    std::string body;
    Redelivered redelivered = Redelivered::no;
    int attempt = 1;  // of this id, whether it reached the claims system or not
};

class FakeClaimsSystem : public Actor {
public:
    FakeClaimsSystem(FakeClock& clock, const Witness& witness) : clock_(clock), witness_(witness) { clock.add(*this); }

    std::function<CallPlan(const Request&)> plan = [](const Request&) { return CallPlan{}; };

    [[nodiscard]] int calls(const std::string& id) const { return count(calls_, id); }  // that reached it
    [[nodiscard]] int attempts(const std::string& id) const { return count(attempts_, id); }
    [[nodiscard]] int processed(const std::string& id) const { return count(processed_, id); }
    [[nodiscard]] const std::vector<Request>& requests() const noexcept { return requests_; }

    // ---- for the callers
    [[nodiscard]] CallPlan begin(int process, Request request) {
        request.attempt = ++attempts_[request.id];
        auto what = plan(request);
        if (reaches(what.answer)) ++calls_[request.id];
        if (what.processed_after)
            to_process_.emplace(clock_.now() + *what.processed_after, std::pair(process, request.id));
        requests_.push_back(std::move(request));
        return what;
    }

    [[nodiscard]] TimePoint next() const override { return to_process_.empty() ? never : to_process_.begin()->first; }
    void act(TimePoint now) override {
        while (next() <= now) {
            const auto [process, id] = std::move(to_process_.begin()->second);
            to_process_.erase(to_process_.begin());
            ++processed_[id];
            witness_.saw({Effect::call_processed, process, id});
        }
    }

private:
    static int count(const std::map<std::string, int>& counts, const std::string& id) {
        const auto at = counts.find(id);
        return at == counts.end() ? 0 : at->second;
    }

    FakeClock& clock_;
    const Witness& witness_;
    std::map<std::string, int> calls_;
    std::map<std::string, int> attempts_;
    std::map<std::string, int> processed_;
    std::multimap<TimePoint, std::pair<int, std::string>> to_process_;
    std::vector<Request> requests_;
};

class FakeClaimsApi : public ClaimsApi {
public:
    FakeClaimsApi(FakeClock& clock, FakeClaimsSystem& system, const Witness& witness, Descriptors& descriptors,
                  const Process& process, Milliseconds timeout)
        : clock_(clock),
          system_(system),
          witness_(witness),
          descriptors_(descriptors),
          process_(process),
          timeout_(timeout),
          fd_(descriptors.add([this] { return first_answer(); })) {}
    FakeClaimsApi(const FakeClaimsApi&) = delete;
    FakeClaimsApi& operator=(const FakeClaimsApi&) = delete;
    ~FakeClaimsApi() override { descriptors_.remove(fd_); }

    // For a test of the tests: what a client does that looks at the clock before it looks at the socket.
    enum class LooksFirstAt { socket, clock } looks_first_at = LooksFirstAt::socket;
    bool has_no_timeout = false;

    [[nodiscard]] int most_in_flight() const noexcept { return most_in_flight_; }
    // Tickets or bytes that were not kept as the seam demands.
    [[nodiscard]] const std::vector<std::string>& errors() const noexcept { return errors_; }

    void start(const Call& call) override {
        process_.step();
        const auto begun = clock_.now();
        const std::string id(call.message_id);
        auto plan = system_.begin(process_.number(), {id, std::string(call.body), call.redelivered});
        if (!tickets_.insert(call.ticket).second) errors_.push_back("a ticket was called twice");
        calls_.push_back({call, id, std::string(call.body), std::move(plan), begun});
        most_in_flight_ = std::max(most_in_flight_, static_cast<int>(calls_.size()));
        saw(Effect::call_begun, calls_.back(), calls_.back().plan.answer);
    }

    [[nodiscard]] std::vector<FinishedCall> turn(TimePoint now) override {
        process_.step();
        std::vector<FinishedCall> finished;
        for (auto at = calls_.begin(); at != calls_.end();) {
            auto ended = look_at(*at, now);
            if (ended) finished.push_back(std::move(*ended));
            at = ended ? calls_.erase(at) : std::next(at);
        }
        return finished;
    }

    void stalled(Milliseconds time) override { stalled_ += time; }
    [[nodiscard]] Milliseconds stalled() const noexcept { return stalled_; }

    [[nodiscard]] Watch watch() const override {
        auto due = never;
        if (!has_no_timeout)
            for (const auto& call : calls_) due = std::min(due, call.begun + timeout_);
        return {fd_, 1, due};
    }

private:
    struct InFlight {
        Call call;
        std::string id;
        std::string body;  // as it was: what was lent must not change
        CallPlan plan;
        TimePoint begun;
        [[nodiscard]] TimePoint answered_at() const { return begun + plan.answer_after; }
    };

    [[nodiscard]] std::optional<FinishedCall> look_at(const InFlight& call, TimePoint now) {
        const bool is_overdue = !has_no_timeout && call.begun + timeout_ <= now;
        const bool is_answered = call.answered_at() <= clock_.now();
        if (is_overdue && (!is_answered || looks_first_at == LooksFirstAt::clock))
            return finish(call, NotAnswered{CallFailure::timed_out, "no answer"}, now);
        if (is_answered) return finish(call, call.plan.answer, call.answered_at());
        return std::nullopt;
    }

    [[nodiscard]] FinishedCall finish(const InFlight& call, Answer answer, TimePoint ended) {
        if (call.call.body != call.body || call.call.message_id != call.id) errors_.push_back("lent bytes changed");
        saw(Effect::call_ended, call, answer);
        return {call.call.ticket, std::move(answer), std::chrono::duration_cast<Milliseconds>(ended - call.begun)};
    }

    void saw(Effect effect, const InFlight& call, const Answer& answer) {
        Happened happened{effect, process_.number(), call.id};
        happened.redelivered = call.call.redelivered;
        happened.answer = &answer;
        happened.in_time = call.plan.answer_after <= timeout_;
        witness_.saw(happened);
        process_.step();
    }

    [[nodiscard]] TimePoint first_answer() const {
        auto first = never;
        for (const auto& call : calls_) first = std::min(first, call.answered_at());
        return first;
    }

    FakeClock& clock_;
    FakeClaimsSystem& system_;
    const Witness& witness_;
    Descriptors& descriptors_;
    const Process& process_;
    Milliseconds timeout_;
    int fd_;
    std::list<InFlight> calls_;
    std::set<Ticket> tickets_;
    Milliseconds stalled_{0};
    int most_in_flight_ = 0;
    std::vector<std::string> errors_;
};

}  // namespace claimq::fake
