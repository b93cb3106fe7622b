// Calls through libcurl to a claims system on loopback that sends the fuzzer's bytes: each call ends with one answer,
// has put one request on the wire, and what a claims system sends is never taken for a fault on this side. A second
// call is then answered by what came after its request, not by bytes left over from the first.
//
// The input: a byte of choices (1: end the connection behind the bytes, 2: in two parts), then the bytes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "http/curl_claims_api.hpp"
#include "http/response.hpp"
#include "property.hpp"

namespace claimq::http {
namespace {

using fuzz::must;

constexpr std::string_view second_answer = "HTTP/1.1 299 Second\r\nContent-Length: 0\r\n\r\n";
constexpr Milliseconds timeout{60'000};  // more than libFuzzer's: what waits for it is found

// Never blocks. Nothing it sends is larger than a socket's buffer.
class ClaimsSystem {
public:
    ClaimsSystem() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof address;
        must(::bind(listener_, any, size) == 0 && ::listen(listener_, 64) == 0, "the test can listen");
        must(::getsockname(listener_, any, &size) == 0, "the test has a port");
        port_ = ntohs(address.sin_port);
    }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

    // Requests whose end has come since the last time.
    [[nodiscard]] int take_requests() {
        for (int fd = ::accept(listener_, nullptr, nullptr); fd >= 0; fd = ::accept(listener_, nullptr, nullptr))
            connections_.push_back({fd, {}});
        int requests = 0;
        for (auto& one : connections_) requests += read(one);
        return requests;
    }
    // To where the last request came from.
    void send(std::string_view bytes) const {
        if (asked_ >= 0) static_cast<void>(::send(asked_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    }
    void end() const {
        if (asked_ >= 0) ::shutdown(asked_, SHUT_WR);
    }
    void forget() {
        for (const auto& one : connections_) ::close(one.fd);
        connections_.clear();
        asked_ = -1;
    }

private:
    struct Connection {
        int fd;
        std::string bytes;
    };
    int read(Connection& one) {
        char piece[4096];
        for (auto got = ::recv(one.fd, piece, sizeof piece, MSG_DONTWAIT); got > 0;
             got = ::recv(one.fd, piece, sizeof piece, MSG_DONTWAIT))
            one.bytes.append(piece, static_cast<std::size_t>(got));
        int requests = 0;
        constexpr std::string_view body = "\r\n\r\n{}";  // of every call here
        for (auto at = one.bytes.find(body); at != std::string::npos; at = one.bytes.find(body)) {
            one.bytes.erase(0, at + body.size());
            asked_ = one.fd;
            ++requests;
        }
        return requests;
    }

    int listener_;
    int port_ = 0;
    std::list<Connection> connections_;
    int asked_ = -1;
};

ClaimsSystem& claims_system() {
    static ClaimsSystem one;
    return one;
}

class Client {
public:
    Client(ClaimsSystem& system, ClaimsApi& api) : system_(system), api_(api) {}

    // Until the request has come. The answer if the call is over before.
    std::optional<Answer> ask(Redelivered redelivered) {
        requests_ = 0;
        api_.start({7, "id", "{}", redelivered});
        while (requests_ == 0)
            if (auto answer = turn(Milliseconds(50))) return answer;
        return std::nullopt;
    }
    // What has become of the call when all that was sent has been read.
    std::optional<Answer> settle() {
        while (true) {
            if (auto answer = turn(Milliseconds(0))) return answer;
            if (is_idle()) return std::nullopt;
        }
    }
    // When nothing more will come.
    Answer finish() {
        while (true)
            if (auto answer = turn(Milliseconds(50))) return *answer;
    }
    [[nodiscard]] int requests() const { return requests_; }

private:
    std::optional<Answer> turn(Milliseconds longest) {
        auto finished = api_.turn(Clock::now());
        const int came = system_.take_requests();
        requests_ += came;
        if (finished.empty()) {
            const auto watch = api_.watch();
            const auto wait = came > 0 || watch.due <= Clock::now() ? Milliseconds(0) : longest;
            pollfd ready{watch.fd, watch.events, 0};
            ::poll(&ready, 1, static_cast<int>(wait.count()));
            return std::nullopt;
        }
        must(finished.size() == 1 && finished[0].ticket == 7, "a call ends once");
        return std::move(finished[0].answer);
    }
    [[nodiscard]] bool is_idle() const {
        const auto watch = api_.watch();
        pollfd ready{watch.fd, watch.events, 0};
        return ::poll(&ready, 1, 0) == 0 && watch.due > Clock::now();
    }

    ClaimsSystem& system_;
    ClaimsApi& api_;
    int requests_ = 0;
};

void check_answer(const Answer& answer, std::string_view bytes) {
    if (const auto* own = std::get_if<OwnFault>(&answer)) must(false, "no answer is our own fault", own->reason);
    if (const auto* answered = std::get_if<Answered>(&answer)) {
        must(answered->status >= 200 && answered->status <= 999, "a status is a final one");
        must(answered->reason.size() <= Response::most_reason_bytes, "a reason is bounded");
    } else {
        const auto how = std::get<NotAnswered>(answer).how;
        must(how == CallFailure::cut || how == CallFailure::garbage, "what was connected is cut or garbage");
    }
    const auto line_end = bytes.find('\n');
    if (line_end == std::string_view::npos) return;
    const auto line = bytes.substr(0, line_end + 1);
    // libcurl takes neither a NUL nor another version.
    const bool is_taken =
        line.find('\0') == std::string_view::npos && (line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 "));
    const auto status = status_of(line);
    if (!is_taken || !status || *status < 200) return;
    const auto* answered = std::get_if<Answered>(&answer);
    must(answered != nullptr && answered->status == *status, "a final status line is the answer, whatever follows");
}

void check(std::string_view input) {
    fuzz::Choices choices(input);
    const auto how = choices.byte();
    const auto bytes = choices.rest();
    ClaimsApiOptions options;
    auto& system = claims_system();
    options.url = parse_claim_url(system.url());
    options.timeout = timeout;
    const auto api = make_claims_api(options);
    Client client(system, *api);

    must(!client.ask(Redelivered::no), "a call waits for its answer");
    std::optional<Answer> first;
    if ((how & 2u) != 0) {
        system.send(bytes.substr(0, bytes.size() / 2));
        first = client.settle();
        if (!first) system.send(bytes.substr(bytes.size() / 2));
    } else {
        system.send(bytes);
    }
    if ((how & 1u) != 0 && !first) system.end();
    if (!first) first = client.settle();
    if (!first) {
        system.end();
        first = client.finish();
    }
    check_answer(*first, bytes);
    must(client.requests() == 1, "one attempt puts one request on the wire");

    must(!client.ask((how & 4u) != 0 ? Redelivered::yes : Redelivered::no), "a call waits for an answer of its own");
    system.send(second_answer);
    const auto second = client.finish();
    const auto* answered = std::get_if<Answered>(&second);
    must(answered != nullptr && answered->status == 299, "a call gets the answer to its own request");
    must(client.requests() == 1, "the second attempt puts one request on the wire");
    system.forget();
}

}  // namespace
}  // namespace claimq::http

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::signal(SIGPIPE, SIG_IGN);
    claimq::http::check(claimq::fuzz::text_of(data, size));
    return 0;
}
