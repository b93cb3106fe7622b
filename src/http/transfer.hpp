// One call in flight: a libcurl easy handle, what it sends, and what it has received. Reused for one call after
// another.
#pragma once
#include <curl/curl.h>

#include <array>
#include <list>
#include <string>

#include "claimq/claims_api.hpp"
#include "http/ending.hpp"
#include "http/handles.hpp"
#include "http/response.hpp"
#include "http/socket_set.hpp"
#include "http/transfer_setup.hpp"

namespace claimq::http {

class Transfer {
public:
    // Both outlive *this. Failure{os_error} when libcurl refuses the handle or an option.
    Transfer(const TransferSetup&, SocketSet&);
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    // Makes the handle ready to be added to a multi handle. The call's body stays where it is.
    void begin(const Call&, TimePoint now);

    // An unsent request's time begins so much later, at `now` at the latest.
    void stalled(Milliseconds time, TimePoint now) noexcept;

    // After the handle was removed from its multi handle, with the code it ended with.
    [[nodiscard]] FinishedCall finish(CURLcode);
    [[nodiscard]] FinishedCall finish_overdue();
    [[nodiscard]] FinishedCall finish_faulty(const std::string& reason);

    [[nodiscard]] bool opened_connection() const;  // not: took an idle one
    [[nodiscard]] TimePoint started() const noexcept { return started_; }
    [[nodiscard]] TimePoint deadline() const noexcept { return started_ + setup_.timeout; }
    [[nodiscard]] CURL* handle() const noexcept { return easy_.get(); }
    [[nodiscard]] static Transfer& of(CURL* handle);

    std::list<Transfer>::iterator position;  // in the list that owns it

private:
    void set_callbacks();
    [[nodiscard]] FinishedCall finished(Answer);
    [[nodiscard]] Answer answer(const Ending&);
    [[nodiscard]] Ending ending_of(CURLcode);
    void note_failed_attempt();

    static int before_request(void* self, char*, char*, int, int) noexcept;
    static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) noexcept;
    static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) noexcept;
    static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept;
    static curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr*) noexcept;

    const TransferSetup& setup_;
    SocketSet& sockets_;
    EasyHandle easy_;
    std::array<char, CURL_ERROR_SIZE> error_{};
    std::string key_header_;
    curl_slist key_node_{};  // the call's own header, in front of those of the setup

    Ticket ticket_ = 0;
    TimePoint started_{};
    RequestSent sent_ = RequestSent::no;
    const char* refused_ = nullptr;  // why before_request() let no (second) request out
    int attempts_ = 0;               // to connect
    int connect_errno_ = 0;          // of those that failed
    int fruitless_ = 0;              // turns of libcurl since the answer went on, while its body is awaited
    Response response_;
};

}  // namespace claimq::http
