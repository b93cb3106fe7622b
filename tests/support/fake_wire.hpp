// A connection between the fake broker and the fake channel: two pipes of frames that are on their way.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "claimq/delivery.hpp"
#include "claimq/settlement.hpp"
#include "fake_clock.hpp"

namespace claimq::fake {

struct Message {
    int number = 0;  // from 1, in the order of publishing
    std::string message_id;
    std::string body;
    Redelivered redelivered = Redelivered::no;
    TimePoint ready_at{};  // to be delivered, and to be counted
};

namespace from_broker {
struct Deliver {
    std::uint64_t tag;
    Message message;
};
struct Depth {
    std::uint64_t ready;
};
struct CancelOk {};
struct Closed {
    std::string reason;
};
}  // namespace from_broker
using FromBroker = std::variant<from_broker::Deliver, from_broker::Depth, from_broker::CancelOk, from_broker::Closed>;

namespace to_broker {
struct Settle {
    std::uint64_t tag;
    Settlement settlement;
};
struct AskDepth {};
struct Cancel {};
}  // namespace to_broker
using ToBroker = std::variant<to_broker::Settle, to_broker::AskDepth, to_broker::Cancel>;

// First in, first out, however long each takes.
template <typename Frame>
class Pipe {
public:
    void put(Frame frame, TimePoint arrives) {
        if (!frames_.empty()) arrives = std::max(arrives, frames_.back().first);
        frames_.emplace_back(arrives, std::move(frame));
    }
    // Before the last `overtaken` frames.
    void put_before(std::size_t overtaken, Frame frame, TimePoint arrives) {
        const auto at = frames_.end() - static_cast<std::ptrdiff_t>(std::min(overtaken, frames_.size()));
        if (at != frames_.begin()) arrives = std::max(arrives, std::prev(at)->first);
        if (at != frames_.end()) arrives = std::min(arrives, at->first);
        frames_.emplace(at, arrives, std::move(frame));
    }
    [[nodiscard]] TimePoint next() const { return frames_.empty() ? never : frames_.front().first; }
    [[nodiscard]] std::optional<Frame> take(TimePoint now) {
        if (frames_.empty() || next() > now) return std::nullopt;
        auto frame = std::move(frames_.front().second);
        frames_.pop_front();
        return frame;
    }
    void keep_first(std::size_t count) { frames_.resize(std::min(count, frames_.size())); }
    void keep_arrived(TimePoint now) {
        while (!frames_.empty() && frames_.back().first > now) frames_.pop_back();
    }
    [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }

private:
    std::deque<std::pair<TimePoint, Frame>> frames_;
};

struct Session {
    int process = 0;
    std::size_t prefetch = 1;
    bool consuming = true;      // the broker's consumer
    bool open = true;           // for the broker
    bool client_gone = false;   // nobody reads or writes at the other end any more
    TimePoint ends_at = never;  // when the broker notices that
    std::uint64_t last_tag = 0;
    std::size_t deliveries_under_way = 0;  // from the queue to the channel, with the time when they set out
    TimePoint under_way_since{};
    std::map<std::uint64_t, Message> unacked;
    Pipe<FromBroker> to_client;
    Pipe<ToBroker> to_broker;
};

// How a connection ends. What arrives of the settlements on their way is a prefix of them.
struct Loss {
    static constexpr std::size_t all = static_cast<std::size_t>(-1);
    enum class Unread { gone, still_read };
    std::string reason = "connection reset";
    Unread unread = Unread::gone;  // what had arrived and was not read
    std::size_t written_that_arrive = 0;
    Milliseconds noticed_after{0};  // by the broker: only then it takes back what is unacked
};

// How long a frame is on its way; asked for each frame.
struct Latency {
    std::function<Milliseconds()> to_broker = [] { return Milliseconds{1}; };
    std::function<Milliseconds()> to_client = [] { return Milliseconds{1}; };
};

}  // namespace claimq::fake
