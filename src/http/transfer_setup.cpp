#include "http/transfer_setup.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "claimq/failure.hpp"
#include "http/ca_file.hpp"
#include "http/socket_set.hpp"

namespace claimq::http {
namespace {

// libcurl gives each of a host's addresses a part of its time to connect, so it is told of the deadline, but must not
// end a call before us.
constexpr Milliseconds beyond_deadline{1000};
constexpr Milliseconds longest_connect{std::numeric_limits<int>::max()};  // what libcurl takes

// Bodies of more than 64 KiB go out in pieces of this size, one a turn.
constexpr long upload_piece = 512L * 1024;

// A connection lives idle for SocketSet::idle_lifetime. libcurl counts whole seconds and keeps what is not over.
constexpr long reuse_within_seconds = SocketSet::idle_lifetime.count() - 1;

constexpr long forget_ca_after_seconds = 600;  // so that a renewed CA bundle is seen by a consumer that never idles

void initialise_libcurl() {
    static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (code != CURLE_OK) throw Failure(ExitStatus::os_error, std::string("libcurl: ") + curl_easy_strerror(code));
}

[[nodiscard]] HeaderList header_list(const std::vector<std::string>& lines) {
    HeaderList list;
    for (const std::string& line : lines) {
        curl_slist* longer = curl_slist_append(list.get(), line.c_str());
        if (longer == nullptr) throw Failure(ExitStatus::os_error, "libcurl: out of memory");
        (void)list.release();
        list.reset(longer);
    }
    return list;
}

[[nodiscard]] HeaderList common_headers(const std::string& token) {
    // Expect is taken away: libcurl would wait for a 100, and send again on a 417.
    std::vector<std::string> lines{"Content-Type: application/json", "Expect:"};
    if (!token.empty()) lines.push_back("Authorization: Bearer " + token);
    return header_list(lines);
}

void check_token(const std::string& token) {
    const bool fit = std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7F; });
    if (!fit) throw Failure(ExitStatus::usage, "the claims system's token has a character that no header can carry");
}

void set_request(const EasyHandle& easy, const TransferSetup& setup) {
    set_option(easy, CURLOPT_URL, setup.url.endpoint.c_str());
    set_option(easy, CURLOPT_PROTOCOLS_STR, setup.url.is_https ? "https" : "http");
    set_option(easy, CURLOPT_POST, 1L);
    set_option(easy, CURLOPT_USERAGENT, setup.user_agent.c_str());
    set_option(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set_option(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    set_option(easy, CURLOPT_FOLLOWLOCATION, 0L);  // a followed 301 becomes a GET
    set_option(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set_option(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);     // a few bytes may unpack to gigabytes
    set_option(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // a proxy's "200 Connection established" is no answer
    set_option(easy, CURLOPT_UPLOAD_BUFFERSIZE, upload_piece);
}

// CURLOPT_TIMEOUT is not set: libcurl checks it before it reads the socket, so an answer that waited out a stall of
// the loop would be a timeout.
void set_connection(const EasyHandle& easy, const TransferSetup& setup) {
    const Milliseconds connect = std::min(setup.timeout, longest_connect - beyond_deadline) + beyond_deadline;
    set_option(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect.count()));
    set_option(easy, CURLOPT_NOSIGNAL, 1L);
    set_option(easy, CURLOPT_QUICK_EXIT, 1L);  // ending a call does not wait for its resolver (lib/asyn-thread.c)
    set_option(easy, CURLOPT_TCP_NODELAY, 1L);
    set_option(easy, CURLOPT_MAXAGE_CONN, reuse_within_seconds);
    // Not for others: CURLOPT_NOPROXY replaces the user's no_proxy.
    if (setup.url.is_loopback) set_option(easy, CURLOPT_NOPROXY, "*");
}

void set_tls(const EasyHandle& easy, const TransferSetup& setup) {
    if (!setup.ca_file.empty()) set_option(easy, CURLOPT_CAINFO, setup.ca_file.c_str());
    // Without it the system's folder of certificates is trusted beside ca_file, and the bundle is parsed anew for
    // every connection (Curl_ssl_setup_x509_store in lib/vtls/openssl.c).
    set_option(easy, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    set_option(easy, CURLOPT_CA_CACHE_TIMEOUT, forget_ca_after_seconds);
    set_option(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
}

}  // namespace

TransferSetup transfer_setup(const ClaimsApiOptions& options) {
    check_token(options.bearer_token);
    initialise_libcurl();
    if (options.ca_file) check_ca_file(*options.ca_file);
    return {options.url, options.timeout, options.ca_file.value_or(""), options.user_agent,
            common_headers(options.bearer_token)};
}

EasyHandle new_easy_handle(const TransferSetup& setup) {
    EasyHandle easy(curl_easy_init());
    if (!easy) throw Failure(ExitStatus::os_error, "libcurl gave no handle");
    set_request(easy, setup);
    set_connection(easy, setup);
    set_tls(easy, setup);
    return easy;
}

}  // namespace claimq::http
