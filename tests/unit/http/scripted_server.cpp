#include "scripted_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>
#include <system_error>

namespace claimq::http::test {
namespace {

void check(bool good, const char* what) {
    if (!good) throw std::system_error(errno, std::generic_category(), what);
}

// A bound TCP socket of 127.0.0.1, and its port.
[[nodiscard]] std::pair<int, int> bound_socket() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0, "socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    check(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
    check(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
    return {fd, ntohs(address.sin_port)};
}

[[nodiscard]] std::size_t content_length(const Request& request) {
    const std::vector<std::string> lengths = request.values("Content-Length");
    std::size_t length = 0;
    if (!lengths.empty()) std::from_chars(lengths[0].data(), lengths[0].data() + lengths[0].size(), length);
    return length;
}

// OpenSSL writes without MSG_NOSIGNAL. For this thread only: that the client raises none is a part of the tests.
void block_sigpipe() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace

std::vector<std::string> Request::values(std::string_view name) const {
    std::vector<std::string> out;
    for (const std::string& header : headers) {
        const std::size_t colon = header.find(':');
        if (colon != name.size() || strncasecmp(header.data(), name.data(), name.size()) != 0) continue;
        out.push_back(header.substr(std::min(header.size(), colon + 2)));
    }
    return out;
}

bool Connection::read_more() {
    std::array<char, 65536> bytes{};
    const ssize_t count = tls_ != nullptr ? SSL_read(tls_, bytes.data(), static_cast<int>(bytes.size()))
                                          : ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    buffer_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
}

bool Connection::read_head(Request& request) {
    std::size_t end = std::string::npos;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
        if (!read_more()) return false;
    std::string head = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < head.size();) {
        const std::size_t line_end = head.find("\r\n", at);
        lines.push_back(head.substr(at, line_end - at));
        at = line_end + 2;
    }
    request.line = lines.front();
    request.headers.assign(lines.begin() + 1, lines.end());
    return true;
}

std::optional<Request> Connection::read_request() {
    Request request;
    if (!read_head(request)) return std::nullopt;
    const std::size_t length = content_length(request);
    while (buffer_.size() < length)
        if (!read_more()) return std::nullopt;
    request.body = buffer_.substr(0, length);
    buffer_.erase(0, length);
    return request;
}

bool Connection::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t piece = std::min(bytes.size(), std::size_t{1} << 20);
        const ssize_t count = tls_ != nullptr ? SSL_write(tls_, bytes.data(), static_cast<int>(piece))
                                              : ::send(fd_, bytes.data(), piece, MSG_NOSIGNAL);
        if (count <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

void Connection::wait_for_end() {
    while (read_more()) buffer_.clear();
}

void Connection::reset() {
    const linger at_once{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

ScriptedServer::ScriptedServer(Script script, SSL_CTX* tls) : script_(std::move(script)), tls_(tls) {
    std::tie(listener_, port_) = bound_socket();
    check(::listen(listener_, 1024) == 0, "listen");
    acceptor_ = std::thread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& script : scripts_) script.join();
    ::close(listener_);
}

void ScriptedServer::accept_all() {
    for (int number = 0;; ++number) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        const std::lock_guard lock(mutex_);
        ++accepted_;
        if (ending_) {
            ::close(fd);
            return;
        }
        open_.push_back(fd);
        scripts_.emplace_back([this, fd, number] { serve(fd, number); });
    }
}

void ScriptedServer::serve(int fd, int number) {
    if (tls_ == nullptr) {
        Connection connection(fd);
        script_(connection, number);
    } else {
        block_sigpipe();
        const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(tls_), &SSL_free);
        SSL_set_fd(tls.get(), fd);
        Connection connection(fd, tls.get());
        if (SSL_accept(tls.get()) == 1)
            script_(connection, number);
        else
            Connection(fd).wait_for_end();  // a RST would overtake the alert
    }
    const std::lock_guard lock(mutex_);
    open_.remove(fd);
    ::close(fd);
}

void Recorder::operator()(Connection& connection, int number) {
    while (auto request = connection.read_request()) {
        const std::string answer = answer_(*request);
        {
            const std::lock_guard lock(mutex_);
            requests_.push_back(*std::move(request));
            connections_.push_back(number);
        }
        if (!connection.send(answer)) return;
    }
}

std::vector<Request> Recorder::requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
}

std::vector<int> Recorder::connections() const {
    const std::lock_guard lock(mutex_);
    return connections_;
}

int closed_port() {
    const auto [fd, port] = bound_socket();  // bound, never listened on
    ::close(fd);
    return port;
}

}  // namespace claimq::http::test
