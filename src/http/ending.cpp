#include "http/ending.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace claimq::http {
namespace {

// Failures that no claims system can cause: our set-up, our memory, what we trust.
constexpr std::array own_codes{CURLE_FAILED_INIT,
                               CURLE_URL_MALFORMAT,
                               CURLE_NOT_BUILT_IN,
                               CURLE_INTERFACE_FAILED,
                               CURLE_UNKNOWN_OPTION,
                               CURLE_SSL_ENGINE_NOTFOUND,
                               CURLE_SSL_ENGINE_SETFAILED,
                               CURLE_SSL_ENGINE_INITFAILED,
                               CURLE_SSL_CERTPROBLEM,
                               CURLE_SSL_CIPHER,
                               CURLE_PEER_FAILED_VERIFICATION,
                               CURLE_SSL_CACERT_BADFILE,
                               CURLE_SSL_CRL_BADFILE,
                               CURLE_SSL_ISSUER_ERROR,
                               CURLE_SSL_PINNEDPUBKEYNOTMATCH,
                               CURLE_SSL_INVALIDCERTSTATUS,
                               CURLE_SSL_CLIENTCERT,
                               CURLE_RECURSIVE_API_CALL,
                               CURLE_UNRECOVERABLE_POLL};

// No descriptor, memory or local port left; EACCES and EPERM are this machine's own firewall.
constexpr std::array own_errnos{EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, EACCES, EPERM};

constexpr std::array failures{
    std::pair{CURLE_COULDNT_CONNECT, CallFailure::refused},
    std::pair{CURLE_PROXY, CallFailure::refused},
    std::pair{CURLE_COULDNT_RESOLVE_HOST, CallFailure::unresolved},
    std::pair{CURLE_COULDNT_RESOLVE_PROXY, CallFailure::unresolved},
    std::pair{CURLE_OPERATION_TIMEDOUT, CallFailure::timed_out},
    std::pair{CURLE_OK, CallFailure::garbage},                    // an end, but no final status line
    std::pair{CURLE_UNSUPPORTED_PROTOCOL, CallFailure::garbage},  // "Received HTTP/0.9 when not allowed"
    std::pair{CURLE_WEIRD_SERVER_REPLY, CallFailure::garbage},
    std::pair{CURLE_WRITE_ERROR, CallFailure::garbage},            // stopped by Response
    std::pair{CURLE_OUT_OF_MEMORY, CallFailure::garbage},          // a header line of over 100 KiB, see is_own()
    std::pair{CURLE_BAD_FUNCTION_ARGUMENT, CallFailure::garbage},  // a header line without a colon, see is_own()
};

// A machine without IPv6 says EADDRNOTAVAIL for ::1, which must not hide that 127.0.0.1 refused.
constexpr std::array shortages{EMFILE, ENFILE, ENOBUFS, ENOMEM};
constexpr std::array missing_kind_of_address{EADDRNOTAVAIL, EAFNOSUPPORT};

template <class Array, class Value>
[[nodiscard]] constexpr bool contains(const Array& array, const Value& value) {
    return std::find(array.begin(), array.end(), value) != array.end();
}

[[nodiscard]] bool is_own(const Ending& ending) {
    if (contains(own_codes, ending.code)) return true;
    // With TLS 1.3 this comes after the handshake, as a failed read (ossl_recv in lib/vtls/openssl.c).
    if (ending.text.find("alert certificate required") != std::string::npos) return true;
    // lib/http.c reports a header line longer than its buffer as out of memory too, lib/headers.c one without a colon
    // as a bad argument. Where memory is really short, our own next allocation ends the process.
    if (ending.code == CURLE_OUT_OF_MEMORY || ending.code == CURLE_BAD_FUNCTION_ARGUMENT)
        return ending.sent == RequestSent::no;
    const bool nothing_reached = ending.code == CURLE_COULDNT_CONNECT || ending.code == CURLE_COULDNT_RESOLVE_HOST ||
                                 ending.code == CURLE_COULDNT_RESOLVE_PROXY;
    return nothing_reached && contains(own_errnos, ending.os_errno);
}

// A code that is not in the table is a connection that did not carry the call through: the claim is tried once more.
[[nodiscard]] CallFailure failure_of(CURLcode code) {
    const auto* found =
        std::find_if(failures.begin(), failures.end(), [&](const auto& row) { return row.first == code; });
    return found == failures.end() ? CallFailure::cut : found->second;
}

[[nodiscard]] std::string reason_of(const Ending& ending) {
    std::string reason = ending.text;
    if (reason.empty()) reason = ending.code == CURLE_OK ? "no status line" : curl_easy_strerror(ending.code);
    if (ending.os_errno != 0) reason += ": " + std::generic_category().message(ending.os_errno);
    return reason;
}

[[nodiscard]] int weight(int os_errno) {
    if (os_errno == 0) return 0;
    if (contains(missing_kind_of_address, os_errno)) return 1;
    return contains(shortages, os_errno) ? 3 : 2;
}

}  // namespace

int more_telling(int one, int other) noexcept { return weight(other) > weight(one) ? other : one; }

Answer unanswered(const Ending& ending) {
    if (is_own(ending)) return OwnFault{reason_of(ending)};
    return NotAnswered{failure_of(ending.code), reason_of(ending)};
}

}  // namespace claimq::http
