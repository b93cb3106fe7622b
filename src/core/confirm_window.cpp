#include "claimq/confirm_window.hpp"

#include <algorithm>
#include <utility>

namespace claimq {

std::string_view name(PublishResult result) noexcept {
    switch (result) {
        case PublishResult::confirmed: return "confirmed";
        case PublishResult::returned: return "returned";
        case PublishResult::nacked: return "nacked";
        case PublishResult::too_large: return "too-large";
        case PublishResult::unknown: return "unknown";
        case PublishResult::not_sent: return "not-sent";
    }
    return "?";
}

bool ConfirmWindow::has_room_for(std::size_t bytes) const noexcept {
    return count_ == 0 || (count_ < most_claims_ && bytes_ + bytes <= most_bytes_);
}

const OutgoingClaim& ConfirmWindow::open(OutgoingClaim claim, TimePoint now) {
    if (claim.first_sent == TimePoint{}) claim.first_sent = now;
    bytes_ += claim.body.size();
    ++count_;
    return open_.emplace_back(Open{std::move(claim), now, std::nullopt}).claim;
}

void ConfirmWindow::progressed(TimePoint now) noexcept {
    if (!open_.empty()) open_.back().since = now;
}

void ConfirmWindow::returned(std::string_view message_id, std::string reason) {
    const auto meant = std::ranges::find_if(
        open_, [&](const Open& one) { return !one.closed && !one.returned && one.claim.guid == message_id; });
    if (meant != open_.end()) meant->returned = std::move(reason);
}

std::vector<ClosedPublish> ConfirmWindow::confirmed(std::uint64_t tag, Multiple multiple, Confirm confirm) {
    std::vector<ClosedPublish> ended;
    const auto end = first_tag_ + open_.size();
    // Tag 0 with `multiple` is "all so far": amqp 0-9-1 reference, basic.ack delivery-tag.
    const bool all = tag == 0 && multiple == Multiple::yes;
    if (!all && (tag < first_tag_ || tag >= end)) return ended;
    const auto last = all ? end - 1 : tag;
    for (auto at = multiple == Multiple::yes ? first_tag_ : tag; at <= last; ++at) {
        auto& one = open_[at - first_tag_];
        if (!one.closed) ended.push_back(close(one, confirm));
    }
    drop_closed();
    return ended;
}

ClosedPublish ConfirmWindow::close(Open& one, Confirm confirm) {
    one.closed = true;
    --count_;
    bytes_ -= one.claim.body.size();
    if (confirm == Confirm::nack) return {std::move(one.claim), PublishResult::nacked, {}};
    if (one.returned) return {std::move(one.claim), PublishResult::returned, std::move(*one.returned)};
    return {std::move(one.claim), PublishResult::confirmed, {}};
}

void ConfirmWindow::drop_closed() {
    while (!open_.empty() && open_.front().closed) {
        open_.pop_front();
        ++first_tag_;
    }
}

std::optional<OutgoingClaim> ConfirmWindow::take_too_large(std::size_t named_size) {
    auto culprit = std::ranges::find_if(
        open_, [&](const Open& one) { return !one.closed && one.claim.body.size() == named_size; });
    if (culprit == open_.end())
        culprit =
            std::ranges::max_element(open_, {}, [](const Open& one) { return one.closed ? 0 : one.claim.body.size(); });
    if (culprit == open_.end() || culprit->closed) return std::nullopt;
    auto claim = close(*culprit, Confirm::nack).claim;
    drop_closed();
    return claim;
}

std::vector<OutgoingClaim> ConfirmWindow::take_open() {
    std::vector<OutgoingClaim> taken;
    for (auto& one : open_)
        if (!one.closed) taken.push_back(std::move(one.claim));
    open_.clear();
    count_ = bytes_ = 0;
    first_tag_ = 1;
    return taken;
}

std::optional<TimePoint> ConfirmWindow::waiting_since() const noexcept {
    if (open_.empty()) return std::nullopt;
    return open_.front().since;  // closed ones have left the front, and later ones were handed over later
}

void ConfirmWindow::restart_waiting(TimePoint now) noexcept {
    for (auto& one : open_) one.since = now;
}

}  // namespace claimq
