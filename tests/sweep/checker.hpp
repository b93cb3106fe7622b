// Watches a simulation and says what may never happen: a claim lost, processed twice without an honest excuse, settled
// before it is recorded. It knows what the broker and the claims system did, not what the loop believes.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "consume/consume_loop.hpp"
#include "fake_world.hpp"

namespace claimq::sweep {

class Checker {
public:
    explicit Checker(fake::World& world);

    void published(int message, const std::string& id, const std::string& body);  // id empty: nothing identifies it
    void started(int process, const consume::Options& options);
    // A process that is gone excuses what it had in the air. One that ended by itself has nothing there.
    void died(int process);
    void ended(int process, ExitStatus status);
    // After the last run: nothing is queued, and each message went one of the two ways.
    void drained();

    [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }
    void violation(const std::string& text);

private:
    struct Call {
        std::uint64_t begun = 0;       // the number of the event
        std::optional<Outcome> truth;  // what the claims system's answer means; nothing: not known yet
        bool in_flight = true;
        bool is_own_fault = false;
        bool recorded = false;  // whatever the outcome
        bool excused = false;   // its process is gone
    };
    struct Claim {
        std::map<int, Call> last_of;  // process to its last call
        int calls = 0;
        int allowed = 0;  // one a message, one a requeue, one a delivery that was called and then taken back
    };
    struct Message {
        std::string id;
        std::string body;
        int holder = 0;  // the process that has it; 0: none
        std::uint64_t handed_over = 0;
        Redelivered redelivered = Redelivered::no;
    };

    void on(const fake::Happened&);
    void handed_over(const fake::Happened&);
    void call_begun(const fake::Happened&);
    void call_ended(const fake::Happened&);
    void recorded(const fake::Happened&);
    void settling(const fake::Happened&);
    void settled(const fake::Happened&);
    void taken_back(const fake::Happened&);
    void check_ack(const Message&);
    void check_dead_letter(const Message&, int process);
    void check_requeue(const Message&, int process);
    void check_hand_back(const Message&, int process);
    [[nodiscard]] Outcome meaning(const Answer&, int process) const;
    [[nodiscard]] const Call* call_for(const Message&, int process) const;
    [[nodiscard]] int calls_in_flight_of(int process) const;
    [[nodiscard]] bool holds(int process, const std::string& id) const;
    [[nodiscard]] bool is_the_only_one(const Message&) const;
    void gone(int process);

    fake::World& world_;
    std::uint64_t event_ = 0;
    std::size_t errors_ = 0;  // of the broker, that are told
    std::map<std::string, Claim> claims_;
    std::map<int, Message> messages_;
    std::map<int, consume::Options> running_;
    std::vector<std::string> violations_;
};

}  // namespace claimq::sweep
