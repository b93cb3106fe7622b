#include "publish/progress_report.hpp"

#include <chrono>

namespace claimq::publish {

namespace {

std::string place(const Origin& origin) {
    const auto file = origin.file == "-" ? std::string("standard input") : origin.file;
    return origin.line == 0 ? file : file + ":" + std::to_string(origin.line);
}

std::string explanation(const ClosedPublish& publish) {
    switch (publish.result) {
        case PublishResult::confirmed: return "confirmed";
        case PublishResult::returned:
            return "unroutable: no queue is bound to exchange 'eai.claim' with key 'claim' (" + publish.reason + ")";
        case PublishResult::nacked: return "refused by the broker (nack): the queue is full or failed";
        case PublishResult::too_large: return "refused by the broker: " + publish.reason;
        case PublishResult::unknown: return "outcome unknown, run it again: " + publish.reason;
        case PublishResult::not_sent: return "not sent: " + publish.reason;
    }
    return "?";
}

}  // namespace

std::string receipt(const ClosedPublish& publish, TimePoint now) {
    const auto& claim = publish.claim;
    const auto ms = claim.first_sent == TimePoint{} ? Milliseconds{0}
                                                    : std::chrono::duration_cast<Milliseconds>(now - claim.first_sent);
    return "{\"guid\":" + json_string(claim.guid) + ",\"file\":" + json_string(claim.origin.file) +
           ",\"line\":" + (claim.origin.line == 0 ? "null" : std::to_string(claim.origin.line)) + ",\"result\":\"" +
           std::string(name(publish.result)) + "\",\"ms\":" + std::to_string(ms.count()) + "}";
}

void ProgressReport::closed(const ClosedPublish& publish, TimePoint now) {
    ++claims_;
    if (publish.result == PublishResult::confirmed) ++confirmed_;
    if (receipts_ == Receipts::json) results_ << receipt(publish, now) << '\n';
    // Why a claim was not sent at all has been said once, for all of them.
    const bool said = publish.result == PublishResult::confirmed || publish.result == PublishResult::not_sent;
    const auto level = said ? LogLevel::debug : LogLevel::error;
    if (!log_.shows(level)) return;
    clear_progress();
    log_.say(level, place(publish.claim.origin) + ": claim '" + publish.claim.guid + "': " + explanation(publish));
}

void ProgressReport::bad_input(const BadInput& bad) {
    ++bad_;
    clear_progress();
    log_.error(place(bad.origin) + ": " + bad.reason);
}

void ProgressReport::trouble(const std::string& text) {
    clear_progress();
    log_.error(text);
}

void ProgressReport::notice(const std::string& text) {
    clear_progress();
    log_.warning(text);
    log_.flush();  // the operator is to know at once why nothing moves
}

void ProgressReport::turned() {
    log_.flush();
    if (receipts_ == Receipts::json) results_.flush();
    const auto now = Clock::now();
    if (progress_ == Progress::hidden || claims_ < 2 || now - shown_at_ < Milliseconds{100}) return;
    shown_at_ = now;
    on_screen_ = true;
    log_.progress("\r" + std::to_string(confirmed_) + " confirmed\x1b[K");
}

void ProgressReport::clear_progress() {
    if (on_screen_) log_.progress("\r\x1b[K");
    on_screen_ = false;
}

void ProgressReport::summary() {
    clear_progress();
    if (receipts_ == Receipts::json || !log_.shows(LogLevel::info)) return;
    results_ << "published " << confirmed_ << " of " << claims_ + bad_ << (claims_ + bad_ == 1 ? " claim" : " claims")
             << '\n';
}

}  // namespace claimq::publish
