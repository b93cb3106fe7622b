// Which publishes are open on a channel in confirm mode, and how they ended. Pure.
// The broker counts publishes per channel from 1, confirms them out of order, singly or all up to a tag (`multiple`),
// by ack or nack; an unroutable mandatory message is returned first and then acked (rabbitmq.com/confirms.html).
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "claimq/clock.hpp"

namespace claimq {

// Where a claim came from, for messages and receipts.
struct Origin {
    std::string file;
    std::uint64_t line = 0;  // 0: the file is one claim
};

struct OutgoingClaim {
    std::string guid;
    std::string body;
    Origin origin;
    TimePoint first_sent{};  // for the receipt; kept when it is sent again
};

enum class PublishResult { confirmed, returned, nacked, too_large, unknown, not_sent };
[[nodiscard]] std::string_view name(PublishResult) noexcept;

struct ClosedPublish {
    OutgoingClaim claim;
    PublishResult result = PublishResult::unknown;
    std::string reason;  // the broker's words, when it gave some
};

enum class Confirm { ack, nack };
enum class Multiple : bool { no, yes };

class ConfirmWindow {
public:
    ConfirmWindow(std::size_t most_claims, std::size_t most_bytes)
        : most_claims_(most_claims), most_bytes_(most_bytes) {}

    // One claim always has room, however large.
    [[nodiscard]] bool has_room_for(std::size_t bytes) const noexcept;
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }

    // The claim is about to be sent as this channel's next publish. The reference is good until it is closed or taken.
    const OutgoingClaim& open(OutgoingClaim, TimePoint now);

    // The claim opened last is still being written, and bytes of it went out.
    void progressed(TimePoint now) noexcept;

    // basic.return carries no tag: the oldest open claim with this id that was not returned yet is meant.
    void returned(std::string_view message_id, std::string reason);

    // What this confirm closed, in the order of publishing. A tag that is not open closes nothing.
    [[nodiscard]] std::vector<ClosedPublish> confirmed(std::uint64_t tag, Multiple, Confirm);

    // Takes the claim that the broker closed the channel over: its size is the one named, else it is the largest.
    [[nodiscard]] std::optional<OutgoingClaim> take_too_large(std::size_t named_size);

    // All that is open, in order, to be sent again on another channel, whose tags begin at 1 again.
    [[nodiscard]] std::vector<OutgoingClaim> take_open();

    // When the oldest open publish was handed over: what a confirm timeout is counted from.
    [[nodiscard]] std::optional<TimePoint> waiting_since() const noexcept;
    void restart_waiting(TimePoint now) noexcept;

private:
    struct Open {
        OutgoingClaim claim;
        TimePoint since;
        std::optional<std::string> returned;
        bool closed = false;
    };
    ClosedPublish close(Open&, Confirm);
    void drop_closed();

    std::size_t most_claims_;
    std::size_t most_bytes_;
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
    std::uint64_t first_tag_ = 1;  // tag of open_.front()
    std::deque<Open> open_;        // by tag, closed ones leave from the front
};

}  // namespace claimq
