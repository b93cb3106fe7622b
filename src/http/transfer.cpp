#include "http/transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "http/idempotency_key.hpp"

namespace claimq::http {
namespace {

// In each turn libcurl reads up to 1.6 MB (maxloops in lib/transfer.c), of one call for every socket that is ready.
constexpr int most_fruitless = 8;

}  // namespace

Transfer::Transfer(const TransferSetup& setup, SocketSet& sockets)
    : setup_(setup), sockets_(sockets), easy_(new_easy_handle(setup)) {
    set_callbacks();
}

void Transfer::set_callbacks() {
    set_option(easy_, CURLOPT_PRIVATE, this);
    set_option(easy_, CURLOPT_ERRORBUFFER, error_.data());
    set_option(easy_, CURLOPT_PREREQFUNCTION, &Transfer::before_request);
    set_option(easy_, CURLOPT_PREREQDATA, this);
    set_option(easy_, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
    set_option(easy_, CURLOPT_HEADERDATA, this);
    set_option(easy_, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
    set_option(easy_, CURLOPT_WRITEDATA, this);
    set_option(easy_, CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
    set_option(easy_, CURLOPT_XFERINFODATA, this);
    set_option(easy_, CURLOPT_NOPROGRESS, 0L);
    set_option(easy_, CURLOPT_OPENSOCKETFUNCTION, &Transfer::open_socket);
    set_option(easy_, CURLOPT_OPENSOCKETDATA, this);
    set_option(easy_, CURLOPT_CLOSESOCKETFUNCTION, &SocketSet::close);
    set_option(easy_, CURLOPT_CLOSESOCKETDATA, &sockets_);  // outlives the call: the connection does too
}

void Transfer::begin(const Call& call, TimePoint now) {
    ticket_ = call.ticket;
    started_ = now;
    sent_ = RequestSent::no;
    refused_ = nullptr;
    attempts_ = 0;
    connect_errno_ = 0;
    fruitless_ = 0;
    error_[0] = '\0';
    key_header_ = idempotency_key_header(call.message_id);
    key_node_ = {key_header_.data(), setup_.headers.get()};
    set_option(easy_, CURLOPT_HTTPHEADER, &key_node_);
    // With a null pointer libcurl would ask its read function for the body: standard input.
    set_option(easy_, CURLOPT_POSTFIELDS, call.body.empty() ? "" : call.body.data());
    set_option(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    set_option(easy_, CURLOPT_FRESH_CONNECT, call.redelivered == Redelivered::yes ? 1L : 0L);
}

void Transfer::stalled(Milliseconds time, TimePoint now) noexcept {
    if (sent_ == RequestSent::no) started_ = std::min(started_ + time, now);
}

FinishedCall Transfer::finish(CURLcode code) { return finished(answer(ending_of(code))); }

FinishedCall Transfer::finish_overdue() {
    const std::string text = "no answer within " + std::to_string(setup_.timeout.count()) + " ms";
    return finished(answer({CURLE_OPERATION_TIMEDOUT, 0, sent_, text}));
}

FinishedCall Transfer::finish_faulty(const std::string& reason) {
    const std::optional<Answered> received = response_.answered(std::time(nullptr));
    return finished(received ? Answer(*received) : Answer(OwnFault{reason}));
}

bool Transfer::opened_connection() const {
    long opened = 0;
    curl_easy_getinfo(handle(), CURLINFO_NUM_CONNECTS, &opened);
    return opened > 0;
}

FinishedCall Transfer::finished(Answer answer) {
    // What failed names where: the operator may run against more than one claims system.
    if (auto* none = std::get_if<NotAnswered>(&answer)) none->reason = setup_.url.endpoint + ": " + none->reason;
    if (auto* fault = std::get_if<OwnFault>(&answer)) fault->reason = setup_.url.endpoint + ": " + fault->reason;
    const auto took = std::chrono::duration_cast<Milliseconds>(Clock::now() - started_);
    return {ticket_, std::move(answer), took};
}

Answer Transfer::answer(const Ending& ending) {
    std::optional<Answered> received = response_.answered(std::time(nullptr));
    if (received) return *std::move(received);
    return unanswered(ending);
}

Ending Transfer::ending_of(CURLcode code) {
    Ending ending{code, 0, sent_, error_.data()};
    if (code == CURLE_ABORTED_BY_CALLBACK && refused_ != nullptr) {
        ending.text = refused_;
        if (sent_ == RequestSent::no) ending.code = CURLE_OPERATION_TIMEDOUT;
    } else if (code == CURLE_COULDNT_CONNECT) {
        note_failed_attempt();
        ending.os_errno = connect_errno_;
    } else if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY) {
        ending.os_errno = SocketSet::descriptor_shortage();  // the resolver does not say that it lacked one
    }
    return ending;
}

// libcurl keeps the errno of the last attempt only, of an earlier call too.
void Transfer::note_failed_attempt() {
    if (attempts_ == 0) return;
    long os_errno = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &os_errno);
    connect_errno_ = more_telling(connect_errno_, static_cast<int>(os_errno));
}

Transfer& Transfer::of(CURL* handle) {
    char* self = nullptr;
    curl_easy_getinfo(handle, CURLINFO_PRIVATE, &self);
    return *reinterpret_cast<Transfer*>(self);
}

// Called before each request goes out. libcurl sends a POST again by itself when a reused connection dies without an
// answer (Curl_retry_request in lib/transfer.c), although the claims system may have processed it.
int Transfer::before_request(void* self, char*, char*, int, int) noexcept {
    auto& transfer = *static_cast<Transfer*>(self);
    if (transfer.sent_ == RequestSent::yes)
        transfer.refused_ = "the connection was closed without an answer";
    else if (transfer.deadline() <= Clock::now())
        transfer.refused_ = "the time was up before the request could be sent";
    if (transfer.refused_ != nullptr) return CURL_PREREQFUNC_ABORT;
    transfer.sent_ = RequestSent::yes;
    return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) noexcept {
    const std::size_t bytes = size * count;
    auto& transfer = *static_cast<Transfer*>(self);
    transfer.fruitless_ = 0;
    const auto verdict = transfer.response_.take_line({data, bytes});
    return verdict == Response::Verdict::stop ? 0 : bytes;
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) noexcept {
    const std::size_t bytes = size * count;
    auto& transfer = *static_cast<Transfer*>(self);
    transfer.fruitless_ = 0;
    const auto verdict = transfer.response_.take_body({data, bytes});
    return verdict == Response::Verdict::stop ? 0 : bytes;
}

// libcurl hands over no chunk's extension and knows no end of it: a few calls that are sent one would keep the loop
// reading, away from heartbeats and deadlines. The status is known, so nothing is lost by ending such a call.
int Transfer::on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept {
    auto& transfer = *static_cast<Transfer*>(self);
    return transfer.response_.awaits_body() && ++transfer.fruitless_ > most_fruitless ? 1 : 0;
}

curl_socket_t Transfer::open_socket(void* self, curlsocktype, curl_sockaddr* address) noexcept {
    auto& transfer = *static_cast<Transfer*>(self);
    transfer.note_failed_attempt();
    const curl_socket_t fd = transfer.sockets_.open(*address);
    if (fd == CURL_SOCKET_BAD)
        transfer.connect_errno_ = more_telling(transfer.connect_errno_, errno);
    else
        ++transfer.attempts_;
    return fd;
}

}  // namespace claimq::http
