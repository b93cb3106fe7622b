#include "http/claim_url.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "claimq/failure.hpp"
#include "http/handles.hpp"

namespace claimq::http {
namespace {

[[noreturn]] void refuse(std::string_view why) { throw Failure(ExitStatus::usage, "--claim: " + std::string(why)); }

[[nodiscard]] std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return out;
}

// What libcurl's parser lets pass and we do not: it takes one to three slashes, and drops an empty query or fragment.
void check_shape(std::string_view text) {
    const std::string start = lower(text.substr(0, 8));
    const bool http = start.starts_with("http://");
    if (!http && !start.starts_with("https://")) refuse("the URL must begin with http:// or https://");
    const std::string_view rest = text.substr(http ? 7 : 8);
    if (rest.empty() || rest.front() == '/') refuse("the URL has no host");
    if (rest.find('#') != std::string_view::npos) refuse("the URL must not have a fragment (#)");
    if (rest.find('?') != std::string_view::npos) refuse("the URL must not have a query (?)");
    if (rest.substr(0, rest.find('/')).find('@') != std::string_view::npos)
        refuse("the URL must not have a user or a password; a token goes in EAI_CLAIM_TOKEN");
}

[[nodiscard]] UrlHandle parse(std::string_view text) {
    UrlHandle url(curl_url());
    if (!url) throw Failure(ExitStatus::os_error, "libcurl: out of memory");
    if (text.find('\0') != std::string_view::npos) refuse("the URL has a NUL character");
    const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, std::string(text).c_str(), 0);
    if (code != CURLUE_OK) refuse("not a URL: " + std::string(curl_url_strerror(code)));
    return url;
}

[[nodiscard]] std::string part(const UrlHandle& url, CURLUPart which) {
    char* text = nullptr;
    if (curl_url_get(url.get(), which, &text, 0) != CURLUE_OK) return {};
    const CurlString owner(text);
    return owner.get();
}

[[nodiscard]] std::string host_of(const UrlHandle& url) {
    const std::string host = lower(part(url, CURLUPART_HOST));
    return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

// libcurl itself answers localhost and everything under it without asking a name server (lib/hostip.c), as RFC 6761
// section 6.3 wants it.
[[nodiscard]] bool is_loopback(std::string host) {
    if (host.ends_with('.')) host.pop_back();
    if (host == "localhost" || host.ends_with(".localhost")) return true;
    std::array<unsigned char, sizeof(in6_addr)> address{};
    if (inet_pton(AF_INET, host.c_str(), address.data()) == 1) return address[0] == 127;
    if (inet_pton(AF_INET6, host.c_str(), address.data()) != 1) return false;
    constexpr std::array<unsigned char, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};  // ::ffff:127.0.0.1
    if (std::equal(mapped.begin(), mapped.end(), address.begin())) return address[12] == 127;
    return std::all_of(address.begin(), address.end() - 1, [](auto byte) { return byte == 0; }) && address[15] == 1;
}

}  // namespace

ClaimUrl parse_claim_url(std::string_view text) {
    check_shape(text);
    const UrlHandle url = parse(text);
    if (part(url, CURLUPART_PORT) == "0") refuse("the URL's port is 0");
    ClaimUrl out;
    out.host = host_of(url);
    out.is_https = part(url, CURLUPART_SCHEME) == "https";
    out.is_loopback = is_loopback(out.host);
    out.endpoint = part(url, CURLUPART_URL);
    while (out.endpoint.ends_with('/')) out.endpoint.pop_back();
    out.endpoint += "/v1/claims";
    return out;
}

}  // namespace claimq::http
