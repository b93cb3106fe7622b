#include "http/socket_set.hpp"

#include <curl/curl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <string>

#include "driving.hpp"
#include "http/transfer.hpp"
#include "scripted_server.hpp"

namespace claimq::http::test {
namespace {

// Runs one transfer on the sockets alone, without libcurl's timers.
[[nodiscard]] Answer run(Transfer& transfer, SocketSet& sockets, CURLM* multi) {
    curl_multi_add_handle(multi, transfer.handle());
    int running = 0;
    curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    pollfd readable{sockets.fd(), POLLIN, 0};
    const int longest = static_cast<int>(std::chrono::milliseconds(patience).count());
    int left = 0;
    const CURLMsg* message = nullptr;
    while ((message = curl_multi_info_read(multi, &left)) == nullptr && ::poll(&readable, 1, longest) > 0) {
        sockets.act(multi);
        sockets.try_next_addresses(multi);
    }
    const CURLcode code = message == nullptr ? CURLE_OPERATION_TIMEDOUT : message->data.result;
    curl_multi_remove_handle(multi, transfer.handle());
    return transfer.finish(code).answer;
}

TEST(SocketSet, AddressThatRefusesIsFollowedByTheNextAtOnce) {
    Recorder recorder("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    const ScriptedServer server(recorder.script());
    const std::string port = server.address().substr(server.address().find(':') + 1);
    const TransferSetup setup = transfer_setup(options_for("http://claims.example:" + port));
    const HeaderList addresses(
        curl_slist_append(nullptr, ("claims.example:" + port + ":127.0.0.2,127.0.0.3,127.0.0.1").c_str()));

    SocketSet sockets;
    const MultiHandle multi(curl_multi_init());
    sockets.serve(multi.get());
    Transfer transfer(setup, sockets);
    EXPECT_EQ(curl_easy_setopt(transfer.handle(), CURLOPT_RESOLVE, addresses.get()), CURLE_OK);
    transfer.begin({1, "id", "{}", Redelivered::no}, Clock::now());
    EXPECT_EQ(text_of(run(transfer, sockets, multi.get())), "201");
    EXPECT_EQ(sockets.epoll_errno(), 0);
}

}  // namespace
}  // namespace claimq::http::test
