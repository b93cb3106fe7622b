#include "http/curl_claims_api.hpp"

#include <curl/curl.h>
#include <poll.h>

#include <algorithm>
#include <list>
#include <system_error>
#include <utility>
#include <vector>

#include "claimq/failure.hpp"
#include "http/handles.hpp"
#include "http/socket_set.hpp"
#include "http/transfer.hpp"

namespace claimq::http {
namespace {

// While a call is overdue, what its socket holds is read to the end, but not for ever.
constexpr int most_rounds = 64;

constexpr TimePoint at_once{};  // in the past, and unlike TimePoint::min() it can be subtracted from

class CurlClaimsApi final : public ClaimsApi {
public:
    explicit CurlClaimsApi(const ClaimsApiOptions& options) : setup_(transfer_setup(options)), multi_(open_multi()) {
        if (!multi_) throw Failure(ExitStatus::os_error, "libcurl gave no multi handle");
        add_spare();  // so that what libcurl refuses shows now
    }

    ~CurlClaimsApi() override {
        for (const Transfer& transfer : in_flight_) curl_multi_remove_handle(multi_.get(), transfer.handle());
    }

    void start(const Call&) override;
    [[nodiscard]] std::vector<FinishedCall> turn(TimePoint now) override;
    void stalled(Milliseconds time) override;
    [[nodiscard]] Watch watch() const override;

private:
    using Transfers = std::list<Transfer>;  // callbacks hold their addresses

    [[nodiscard]] MultiHandle open_multi() noexcept;  // null when libcurl is out of memory
    void add_spare();
    void keep_as_many_connections();
    [[nodiscard]] bool act_once(TimePoint now);
    void take_finished();
    void end_overdue(TimePoint now);
    void end_all_faulty();
    void make_room_for_waiting(TimePoint now);
    void drop_idle_connections(TimePoint now);
    [[nodiscard]] bool overdue(TimePoint now) const;
    void put_back(Transfer&);
    static int set_timer(CURLM*, long milliseconds, void* self) noexcept;

    TransferSetup setup_;
    SocketSet sockets_;  // outlives the multi handle, which closes its connections through it
    MultiHandle multi_;
    Transfers in_flight_;  // by deadline, since all have the same timeout
    Transfers spare_;
    std::size_t most_in_flight_ = 0;
    TimePoint timer_due_ = TimePoint::max();
    std::vector<FinishedCall> finished_;
};

MultiHandle CurlClaimsApi::open_multi() noexcept {
    MultiHandle multi(curl_multi_init());
    if (!multi) return multi;
    sockets_.serve(multi.get());
    curl_multi_setopt(multi.get(), CURLMOPT_TIMERFUNCTION, &CurlClaimsApi::set_timer);
    curl_multi_setopt(multi.get(), CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(most_in_flight_));
    return multi;
}

void CurlClaimsApi::add_spare() {
    spare_.emplace_front(setup_, sockets_);
    spare_.front().position = spare_.begin();
}

// Only notes the call: its first work is done by the next turn(), after what has arrived on idle connections was seen.
void CurlClaimsApi::start(const Call& call) {
    try {
        if (spare_.empty()) add_spare();
        Transfer& transfer = spare_.front();
        transfer.begin(call, Clock::now());
        // One fresh connection replaces an idle one: a claims system that serves one connection at a time would not
        // look at the new one before the idle one ends.
        if (call.redelivered == Redelivered::yes) sockets_.retire_longest_idle();
        const CURLMcode code = curl_multi_add_handle(multi_.get(), transfer.handle());
        if (code != CURLM_OK) throw Failure(ExitStatus::os_error, curl_multi_strerror(code));
        in_flight_.splice(in_flight_.end(), spare_, transfer.position);
        keep_as_many_connections();
    } catch (const Failure& failure) {
        finished_.push_back({call.ticket, OwnFault{failure.what()}, Milliseconds(0)});
    }
}

// libcurl's default keeps four times the handles it has at the moment: when many calls end together it would close
// most of their connections.
void CurlClaimsApi::keep_as_many_connections() {
    if (in_flight_.size() <= most_in_flight_) return;
    most_in_flight_ = in_flight_.size();
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(most_in_flight_));
}

std::vector<FinishedCall> CurlClaimsApi::turn(TimePoint now) {
    for (int round = 0; round < most_rounds; ++round) {
        const bool acted = act_once(now);
        take_finished();
        if (!acted || !overdue(now)) break;
    }
    if (sockets_.epoll_errno() != 0) end_all_faulty();
    end_overdue(now);
    make_room_for_waiting(now);
    drop_idle_connections(now);
    return std::exchange(finished_, {});
}

bool CurlClaimsApi::act_once(TimePoint now) {
    const bool acted = sockets_.act(multi_.get());
    const bool timer = timer_due_ <= now;
    if (timer) {
        int running = 0;
        timer_due_ = TimePoint::max();
        curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
    }
    sockets_.try_next_addresses(multi_.get());
    return acted || timer;
}

void CurlClaimsApi::take_finished() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        const CURLcode code = message->data.result;
        Transfer& transfer = Transfer::of(message->easy_handle);  // the message dies with put_back()
        put_back(transfer);
        finished_.push_back(transfer.finish(code));
    }
}

void CurlClaimsApi::put_back(Transfer& transfer) {
    curl_multi_remove_handle(multi_.get(), transfer.handle());
    spare_.splice(spare_.begin(), in_flight_, transfer.position);
}

bool CurlClaimsApi::overdue(TimePoint now) const { return !in_flight_.empty() && in_flight_.front().deadline() <= now; }

void CurlClaimsApi::end_overdue(TimePoint now) {
    while (overdue(now)) {
        Transfer& transfer = in_flight_.front();
        put_back(transfer);
        finished_.push_back(transfer.finish_overdue());
    }
}

// A socket that cannot be watched may belong to any of them.
void CurlClaimsApi::end_all_faulty() {
    const std::string reason = "epoll_ctl: " + std::generic_category().message(sockets_.epoll_errno());
    while (!in_flight_.empty()) {
        Transfer& transfer = in_flight_.front();
        put_back(transfer);
        finished_.push_back(transfer.finish_faulty(reason));
    }
}

// Without calls, all connections are closed with their multi handle. While there are some, libcurl has no way to close
// a single idle one: it is shut down.
void CurlClaimsApi::drop_idle_connections(TimePoint now) {
    if (now < sockets_.idle_check_due()) return;
    const bool all_idle = in_flight_.empty() && sockets_.last_released() + SocketSet::idle_lifetime <= now;
    MultiHandle next = all_idle ? open_multi() : nullptr;
    if (next) {
        multi_ = std::move(next);
        timer_due_ = TimePoint::max();
        sockets_.forget_all();
    } else {
        sockets_.retire_long_idle(now);
    }
}

// A claims system that serves one connection at a time looks at a new one only when the one before has ended. So while
// a call waits on a connection that it opened, none that is idle is used again.
void CurlClaimsApi::make_room_for_waiting(TimePoint now) {
    constexpr std::chrono::seconds patience{1};
    for (const Transfer& transfer : in_flight_) {  // the longest waiting first
        if (transfer.started() + patience > now) return;
        if (transfer.opened_connection()) return sockets_.retire_idle();
    }
}

void CurlClaimsApi::stalled(Milliseconds time) {
    const TimePoint now = Clock::now();
    for (Transfer& transfer : in_flight_) transfer.stalled(time, now);
    in_flight_.sort([](const Transfer& one, const Transfer& other) { return one.deadline() < other.deadline(); });
}

Watch CurlClaimsApi::watch() const {
    TimePoint due = std::min(timer_due_, sockets_.idle_check_due());
    if (!in_flight_.empty()) due = std::min(due, in_flight_.front().deadline());
    if (!finished_.empty()) due = at_once;
    return {sockets_.fd(), POLLIN, due};
}

int CurlClaimsApi::set_timer(CURLM*, long milliseconds, void* self) noexcept {
    auto& api = *static_cast<CurlClaimsApi*>(self);
    if (milliseconds < 0)
        api.timer_due_ = TimePoint::max();
    else if (milliseconds == 0)
        api.timer_due_ = at_once;  // in this turn, however long ago its `now` was taken
    else
        api.timer_due_ = Clock::now() + Milliseconds(milliseconds);
    return 0;
}

}  // namespace

std::unique_ptr<ClaimsApi> make_claims_api(const ClaimsApiOptions& options) {
    return std::make_unique<CurlClaimsApi>(options);
}

}  // namespace claimq::http
