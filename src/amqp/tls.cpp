#include "amqp/tls.hpp"

#include <amqp_ssl_socket.h>
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "amqp/connect_failure.hpp"

namespace claimq::amqp {

namespace {

// OpenSSL's callbacks carry no pointer of ours that lives long enough; a handshake runs on one thread from begin to
// end.
thread_local std::string refused_certificate;
thread_local std::string server_name;

int remember_refusal(int accepted, X509_STORE_CTX* store) {
    if (accepted == 0) refused_certificate = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
    return accepted;
}

// The library has set the server name to what it connects to, an address here; the handshake has not begun yet.
void set_server_name(const SSL* ssl, int where, int) {
    if ((where & SSL_CB_HANDSHAKE_START) == 0) return;
    SSL_set_tlsext_host_name(const_cast<SSL*>(ssl), server_name.empty() ? nullptr : server_name.data());
}

[[noreturn]] void unusable(const std::string& what, const std::string& file) {
    const auto code = ERR_get_error();
    const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
    throw ConnectFailure(ExitStatus::os_error, Retry::pointless,
                         what + " " + file + " cannot be used" + (reason ? std::string(": ") + reason : ""));
}

bool is_address(const std::string& host) {
    in6_addr ignored{};
    return inet_pton(AF_INET, host.c_str(), &ignored) == 1 || inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

void trust(amqp_socket_t* socket, SSL_CTX* context, const Endpoint& endpoint) {
    const auto& tls = endpoint.tls;
    amqp_ssl_socket_set_verify_hostname(socket, 0);  // it compares names only; ours below knows IP addresses
    amqp_ssl_socket_set_verify_peer(socket, tls.verify == VerifyPeer::yes);
    if (tls.verify == VerifyPeer::no) return;
    if (tls.cacertfile.empty())
        SSL_CTX_set_default_verify_paths(context);
    else if (amqp_ssl_socket_set_cacert(socket, tls.cacertfile.c_str()) != AMQP_STATUS_OK)
        unusable("cacertfile", tls.cacertfile);
    const auto& name = tls.server_name.empty() ? endpoint.host : tls.server_name;
    auto* parameters = SSL_CTX_get0_param(context);
    if (is_address(name))
        X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str());
    else
        X509_VERIFY_PARAM_set1_host(parameters, name.c_str(), name.size());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, remember_refusal);
}

void identify(amqp_socket_t* socket, const Tls& tls) {
    if (tls.certfile.empty()) return;
    const auto& key = tls.keyfile.empty() ? tls.certfile : tls.keyfile;
    // Unchecked, a wrong key would mean a connection without a certificate.
    if (amqp_ssl_socket_set_key(socket, tls.certfile.c_str(), key.c_str()) != AMQP_STATUS_OK)
        unusable("certfile or keyfile", tls.certfile);
}

timeval remaining(TimePoint until) {
    const auto rest = std::max(std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now()),
                               std::chrono::microseconds{1});
    return {static_cast<time_t>(rest.count() / 1'000'000), static_cast<suseconds_t>(rest.count() % 1'000'000)};
}

[[noreturn]] void refuse(int status) {
    if (!refused_certificate.empty())
        throw ConnectFailure(ExitStatus::unavailable, Retry::pointless,
                             "TLS: the broker's certificate is not accepted: " + refused_certificate);
    const auto code = ERR_peek_last_error();
    const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
    throw ConnectFailure(ExitStatus::unavailable, Retry::worthwhile,
                         std::string("TLS: ") + (reason ? reason : amqp_error_string2(status)));
}

}  // namespace

void open_tls(amqp_connection_state_t connection, const Endpoint& endpoint, const std::vector<Address>& addresses,
              TimePoint until) {
    auto* socket = amqp_ssl_socket_new(connection);
    if (socket == nullptr) throw ConnectFailure(ExitStatus::os_error, Retry::pointless, "TLS cannot be set up");
    auto* context = static_cast<SSL_CTX*>(amqp_ssl_socket_get_context(socket));
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    trust(socket, context, endpoint);
    identify(socket, endpoint.tls);

    const auto& name = endpoint.tls.server_name.empty() ? endpoint.host : endpoint.tls.server_name;
    server_name = is_address(name) ? std::string{} : name;  // RFC 6066 section 3: no literal addresses
    SSL_CTX_set_info_callback(context, set_server_name);
    refused_certificate.clear();
    ERR_clear_error();
    int status = AMQP_STATUS_SOCKET_ERROR;
    for (const auto& address : addresses) {
        const auto one = remaining(std::min(until, Clock::now() + endpoint.socket_timeout));
        status = amqp_socket_open_noblock(socket, address.numeric().c_str(), endpoint.port, &one);
        if (status == AMQP_STATUS_OK || !refused_certificate.empty()) break;
    }
    SSL_CTX_set_info_callback(context, nullptr);
    if (status == AMQP_STATUS_OK) return;
    // The library has lost the errno of a failed TCP connect: find out whether that was it.
    if (status == AMQP_STATUS_SOCKET_ERROR) {
        const int fd = connect_tcp(addresses, endpoint.socket_timeout, until);
        close(fd);
    }
    refuse(status);
}

}  // namespace claimq::amqp
