// libcurl's handles and descriptors, owned.
#pragma once
#include <curl/curl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "claimq/failure.hpp"

namespace claimq::http {

struct FreeEasy {
    void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
};
struct FreeMulti {
    void operator()(CURLM* handle) const noexcept { curl_multi_cleanup(handle); }
};
struct FreeUrl {
    void operator()(CURLU* handle) const noexcept { curl_url_cleanup(handle); }
};
struct FreeString {
    void operator()(char* text) const noexcept { curl_free(text); }
};
struct FreeList {
    void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using EasyHandle = std::unique_ptr<CURL, FreeEasy>;
using MultiHandle = std::unique_ptr<CURLM, FreeMulti>;
using UrlHandle = std::unique_ptr<CURLU, FreeUrl>;
using CurlString = std::unique_ptr<char, FreeString>;
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

// Failure{os_error} when libcurl does not take it.
template <class Value>
void set_option(const EasyHandle& easy, CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(easy.get(), option, value);
    if (code != CURLE_OK)
        throw Failure(ExitStatus::os_error,
                      "libcurl refused option " + std::to_string(option) + ": " + curl_easy_strerror(code));
}

class Descriptor {
public:
    explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

}  // namespace claimq::http
