#include "http/ending.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace claimq::http {
namespace {

[[nodiscard]] std::string kind(const Answer& answer) {
    if (std::holds_alternative<OwnFault>(answer)) return "own";
    switch (std::get<NotAnswered>(answer).how) {
        case CallFailure::refused: return "refused";
        case CallFailure::unresolved: return "unresolved";
        case CallFailure::timed_out: return "timed_out";
        case CallFailure::cut: return "cut";
        case CallFailure::garbage: return "garbage";
    }
    return "?";
}

constexpr auto sent = RequestSent::yes;
constexpr auto unsent = RequestSent::no;

TEST(Ending, EveryCodeHasItsMeaning) {
    const struct {
        CURLcode code;
        int os_errno;
        RequestSent sent;
        const char* kind;
    } rows[] = {
        {CURLE_COULDNT_CONNECT, ECONNREFUSED, unsent, "refused"},
        {CURLE_COULDNT_CONNECT, EHOSTUNREACH, unsent, "refused"},
        {CURLE_COULDNT_CONNECT, ENETUNREACH, unsent, "refused"},
        {CURLE_COULDNT_CONNECT, EAFNOSUPPORT, unsent, "refused"},
        {CURLE_COULDNT_CONNECT, 0, unsent, "refused"},
        {CURLE_COULDNT_CONNECT, EMFILE, unsent, "own"},
        {CURLE_COULDNT_CONNECT, ENFILE, unsent, "own"},
        {CURLE_COULDNT_CONNECT, ENOBUFS, unsent, "own"},
        {CURLE_COULDNT_CONNECT, ENOMEM, unsent, "own"},
        {CURLE_COULDNT_CONNECT, EADDRNOTAVAIL, unsent, "own"},
        {CURLE_COULDNT_CONNECT, EACCES, unsent, "own"},
        {CURLE_COULDNT_CONNECT, EPERM, unsent, "own"},
        {CURLE_COULDNT_RESOLVE_HOST, 0, unsent, "unresolved"},
        {CURLE_COULDNT_RESOLVE_PROXY, 0, unsent, "unresolved"},
        {CURLE_COULDNT_RESOLVE_HOST, EMFILE, unsent, "own"},
        {CURLE_PROXY, 0, unsent, "refused"},
        {CURLE_OPERATION_TIMEDOUT, 0, unsent, "timed_out"},
        {CURLE_OPERATION_TIMEDOUT, 0, sent, "timed_out"},
        {CURLE_GOT_NOTHING, 0, sent, "cut"},
        {CURLE_RECV_ERROR, ECONNRESET, sent, "cut"},
        {CURLE_RECV_ERROR, EPERM, sent, "cut"},
        {CURLE_SEND_ERROR, EPIPE, sent, "cut"},
        {CURLE_PARTIAL_FILE, 0, sent, "cut"},
        {CURLE_ABORTED_BY_CALLBACK, 0, sent, "cut"},
        {CURLE_SSL_CONNECT_ERROR, 0, unsent, "cut"},
        {CURLE_OK, 0, sent, "garbage"},
        {CURLE_UNSUPPORTED_PROTOCOL, 0, sent, "garbage"},
        {CURLE_WEIRD_SERVER_REPLY, 0, sent, "garbage"},
        {CURLE_WRITE_ERROR, 0, sent, "garbage"},
        {CURLE_OUT_OF_MEMORY, 0, sent, "garbage"},
        {CURLE_OUT_OF_MEMORY, 0, unsent, "own"},
        {CURLE_BAD_FUNCTION_ARGUMENT, 0, sent, "garbage"},
        {CURLE_BAD_FUNCTION_ARGUMENT, 0, unsent, "own"},
        {CURLE_FAILED_INIT, 0, unsent, "own"},
        {CURLE_PEER_FAILED_VERIFICATION, 0, unsent, "own"},
        {CURLE_SSL_CACERT_BADFILE, 0, unsent, "own"},
        {CURLE_SSL_CERTPROBLEM, 0, unsent, "own"},
        {CURLE_SSL_CLIENTCERT, 0, sent, "own"},
        {CURLE_SSL_CIPHER, 0, unsent, "own"},
    };
    for (const auto& row : rows)
        EXPECT_EQ(kind(unanswered({row.code, row.os_errno, row.sent, ""})), row.kind)
            << curl_easy_strerror(row.code) << ", errno " << row.os_errno;
}

TEST(Ending, MissingClientCertificateIsOurs) {
    EXPECT_EQ(kind(unanswered({CURLE_RECV_ERROR, 0, sent, "SSL_read: tlsv13 alert certificate required, errno 0"})),
              "own");
    EXPECT_EQ(kind(unanswered({CURLE_RECV_ERROR, 0, sent, "SSL_read: tlsv1 alert internal error, errno 0"})), "cut");
}

TEST(Ending, OfSeveralAddressesTheMostTellingErrnoCounts) {
    const struct {
        int one;
        int other;
        int counts;
    } rows[] = {
        {0, ECONNREFUSED, ECONNREFUSED},
        {ECONNREFUSED, 0, ECONNREFUSED},
        {EADDRNOTAVAIL, ECONNREFUSED, ECONNREFUSED},  // ::1 where there is no IPv6, then 127.0.0.1
        {ECONNREFUSED, EADDRNOTAVAIL, ECONNREFUSED},
        {EHOSTUNREACH, EAFNOSUPPORT, EHOSTUNREACH},
        {EADDRNOTAVAIL, EADDRNOTAVAIL, EADDRNOTAVAIL},  // no local port left
        {ECONNREFUSED, EMFILE, EMFILE},                 // the second might have answered
        {ENOMEM, ECONNREFUSED, ENOMEM},
    };
    for (const auto& row : rows) EXPECT_EQ(more_telling(row.one, row.other), row.counts) << row.one << row.other;
}

TEST(Ending, ReasonIsLibcurlsTextAndTheSystems) {
    const Answer answer = unanswered({CURLE_COULDNT_CONNECT, ECONNREFUSED, unsent, "Failed to connect to h port 1"});
    EXPECT_EQ(std::get<NotAnswered>(answer).reason, "Failed to connect to h port 1: Connection refused");
    EXPECT_FALSE(std::get<NotAnswered>(unanswered({CURLE_GOT_NOTHING, 0, sent, ""})).reason.empty());
}

}  // namespace
}  // namespace claimq::http
