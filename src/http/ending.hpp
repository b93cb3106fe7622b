// How a transfer ended that brought no final status line, in libcurl's words, and what that means in ours.
#pragma once
#include <curl/curl.h>

#include <string>

#include "claimq/answer.hpp"

namespace claimq::http {

enum class RequestSent : bool { no, yes };  // yes: at least a part of the request may be on the wire

struct Ending {
    CURLcode code = CURLE_OK;
    int os_errno = 0;  // of the system call that failed, where one did
    RequestSent sent = RequestSent::no;
    std::string text;  // libcurl's error buffer; may be empty
};

// A host may have several addresses. Of the errnos of two attempts to connect, the one that says more about the call.
[[nodiscard]] int more_telling(int one, int other) noexcept;

// NotAnswered or OwnFault.
[[nodiscard]] Answer unanswered(const Ending&);

}  // namespace claimq::http
