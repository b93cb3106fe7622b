// A claims system for tests: an HTTP server on a loopback port of its own whose every byte the test decides.
#pragma once
#include <openssl/ssl.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace claimq::http::test {

struct Request {
    std::string line;
    std::vector<std::string> headers;
    std::string body;

    [[nodiscard]] std::vector<std::string> values(std::string_view name) const;  // of the headers of this name
};

// The server's side of a connection.
class Connection {
public:
    explicit Connection(int fd, SSL* tls = nullptr) : fd_(fd), tls_(tls) {}
    [[nodiscard]] std::optional<Request> read_request();  // nothing: the other side has ended it
    [[nodiscard]] bool read_head(Request&);               // without the body
    bool send(std::string_view bytes);                    // false: the other side has ended it
    void wait_for_end();                                  // reads and drops what comes until then
    void reset();                                         // ends it with a RST

private:
    [[nodiscard]] bool read_more();

    int fd_;
    SSL* tls_;  // null: plain
    std::string buffer_;
};

class ScriptedServer {
public:
    // Runs in a thread of its own for every connection, which is closed when it returns. `number` counts from 0.
    using Script = std::function<void(Connection&, int number)>;

    explicit ScriptedServer(Script, SSL_CTX* tls = nullptr);  // with `tls`, scripts begin after the handshake
    ~ScriptedServer();                                        // ends all connections, waits for all scripts
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;

    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] std::string url() const { return (tls_ == nullptr ? "http://" : "https://") + address(); }
    [[nodiscard]] int connections() const { return accepted_; }

private:
    void accept_all();
    void serve(int fd, int number);

    Script script_;
    SSL_CTX* tls_;
    int listener_;
    int port_ = 0;
    std::atomic<int> accepted_ = 0;
    std::mutex mutex_;  // of what follows
    bool ending_ = false;
    std::list<int> open_;
    std::list<std::thread> scripts_;
    std::thread acceptor_;
};

// Keeps what every request brought, and answers each with what `answer` makes of it.
class Recorder {
public:
    using Answer = std::function<std::string(const Request&)>;
    explicit Recorder(Answer answer) : answer_(std::move(answer)) {}
    explicit Recorder(std::string answer) : answer_([answer](const Request&) { return answer; }) {}

    void operator()(Connection&, int number);
    [[nodiscard]] std::vector<Request> requests() const;
    [[nodiscard]] std::vector<int> connections() const;  // the number of the connection that brought it, for each
    [[nodiscard]] ScriptedServer::Script script() {
        return [this](Connection& connection, int number) { (*this)(connection, number); };
    }

private:
    Answer answer_;
    mutable std::mutex mutex_;
    std::vector<Request> requests_;
    std::vector<int> connections_;
};

// A port of 127.0.0.1 on which nobody listens.
[[nodiscard]] int closed_port();

}  // namespace claimq::http::test
