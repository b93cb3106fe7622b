// Drives a ClaimsApi as the loop does: watch, poll, turn.
#pragma once
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/curl_claims_api.hpp"

namespace claimq::http::test {

inline constexpr std::chrono::seconds patience{20};  // a test that waits longer has failed

[[nodiscard]] inline ClaimsApiOptions options_for(const std::string& url) {
    ClaimsApiOptions options;
    options.url = parse_claim_url(url);
    options.timeout = patience;
    return options;
}

[[nodiscard]] inline std::unique_ptr<ClaimsApi> api_for(const std::string& url) {
    return make_claims_api(options_for(url));
}

// Waits as the loop would, but not beyond `longest`. True when the descriptor is readable.
inline bool wait(const ClaimsApi& api, Milliseconds longest) {
    const Watch watch = api.watch();
    const TimePoint now = Clock::now();
    Milliseconds due = longest;
    if (watch.due < now + longest) due = std::max(Milliseconds(0), std::chrono::ceil<Milliseconds>(watch.due - now));
    pollfd fd{watch.fd, watch.events, 0};
    return ::poll(&fd, 1, static_cast<int>(due.count())) > 0;
}

// Turns until `enough` says so of what has finished; what has finished so far when patience is over.
inline std::vector<FinishedCall> drive_until(ClaimsApi& api,
                                             const std::function<bool(const std::vector<FinishedCall>&)>& enough) {
    std::vector<FinishedCall> all;
    const TimePoint give_up = Clock::now() + patience;
    while (!enough(all) && Clock::now() < give_up) {
        for (FinishedCall& call : api.turn(Clock::now())) all.push_back(std::move(call));
        if (!enough(all)) wait(api, Milliseconds(10));
    }
    return all;
}

inline std::vector<FinishedCall> finish(ClaimsApi& api, std::size_t count) {
    return drive_until(api, [count](const auto& all) { return all.size() >= count; });
}

[[nodiscard]] inline Answer call(ClaimsApi& api, std::string_view id = "id-1", std::string_view body = "{}",
                                 Redelivered redelivered = Redelivered::no) {
    api.start({1, id, body, redelivered});
    const std::vector<FinishedCall> all = finish(api, 1);
    return all.empty() ? Answer(OwnFault{"the test's patience is over"}) : all[0].answer;
}

// "201", "cut: ...", "own fault: ...": to be compared and to be read.
[[nodiscard]] inline std::string text_of(const Answer& answer) {
    if (const auto* answered = std::get_if<Answered>(&answer)) return std::to_string(answered->status);
    if (const auto* own = std::get_if<OwnFault>(&answer)) return "own fault: " + own->reason;
    const auto& failure = std::get<NotAnswered>(answer);
    switch (failure.how) {
        case CallFailure::refused: return "refused: " + failure.reason;
        case CallFailure::unresolved: return "unresolved: " + failure.reason;
        case CallFailure::timed_out: return "timed out: " + failure.reason;
        case CallFailure::cut: return "cut: " + failure.reason;
        case CallFailure::garbage: return "garbage: " + failure.reason;
    }
    return "?";
}

[[nodiscard]] inline std::string kind_of(const Answer& answer) {
    const std::string text = text_of(answer);
    return text.substr(0, text.find(':'));
}

}  // namespace claimq::http::test
