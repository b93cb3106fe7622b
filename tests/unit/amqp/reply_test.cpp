#include "amqp/reply.hpp"

#include <amqp_framing.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "claimq/failure.hpp"

namespace claimq::amqp {
namespace {

amqp_rpc_reply_t exception(amqp_method_number_t id, void* decoded) {
    amqp_rpc_reply_t reply{};
    reply.reply_type = AMQP_RESPONSE_SERVER_EXCEPTION;
    reply.reply = {id, decoded};
    return reply;
}

template <typename Close>
Close closed(std::uint16_t code, std::string& text) {
    Close close{};
    close.reply_code = code;
    close.reply_text = {text.size(), text.data()};
    return close;
}

// Status and text of the failure that refusal() throws.
std::pair<ExitStatus, std::string> failure_of(const amqp_rpc_reply_t& reply) {
    try {
        (void)refusal(reply);
    } catch (const Failure& failure) {
        return {failure.status(), failure.what()};
    }
    ADD_FAILURE() << "no failure";
    return {};
}

TEST(StatusOf, TellsPermissionAndConflictFromAllElse) {
    for (int code = 0; code <= 1000; ++code) {
        const auto expected = code == 403   ? ExitStatus::denied
                              : code == 406 ? ExitStatus::conflict
                                            : ExitStatus::unavailable;
        EXPECT_EQ(status_of(code), expected) << code;
    }
}

TEST(Refusal, OfANormalReplyIsNone) {
    amqp_rpc_reply_t reply{};
    reply.reply_type = AMQP_RESPONSE_NORMAL;
    EXPECT_FALSE(refusal(reply));
}

TEST(Refusal, IsTheClosedChannel) {
    std::string text = "NOT_FOUND - no queue 'claim.in'";
    auto close = closed<amqp_channel_close_t>(404, text);
    const auto refused = refusal(exception(AMQP_CHANNEL_CLOSE_METHOD, &close));
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code, 404);
    EXPECT_EQ(refused->text, text);
}

TEST(Refusal, AClosedConnectionIsAFailureInTheBrokersWords) {
    std::string text = "CONNECTION_FORCED - broker forced connection closure";
    auto forced = closed<amqp_connection_close_t>(320, text);
    EXPECT_EQ(failure_of(exception(AMQP_CONNECTION_CLOSE_METHOD, &forced)), std::pair(ExitStatus::unavailable, text));
    auto denied = closed<amqp_connection_close_t>(403, text);
    EXPECT_EQ(failure_of(exception(AMQP_CONNECTION_CLOSE_METHOD, &denied)), std::pair(ExitStatus::denied, text));
}

TEST(Refusal, WhatWasNotAskedForIsAFailure) {
    EXPECT_EQ(failure_of(exception(AMQP_BASIC_ACK_METHOD, nullptr)),
              std::pair(ExitStatus::unavailable, std::string("the broker gave an answer that was not asked for")));
}

TEST(Refusal, ALibraryErrorIsAFailureInOurWords) {
    amqp_rpc_reply_t reply{};
    reply.reply_type = AMQP_RESPONSE_LIBRARY_EXCEPTION;
    reply.library_error = AMQP_STATUS_TIMEOUT;
    EXPECT_EQ(failure_of(reply), std::pair(ExitStatus::unavailable, std::string("the broker did not answer in time")));
}

TEST(LibraryText, SaysWhatHappened) {
    errno = 0;
    EXPECT_EQ(library_text(AMQP_STATUS_CONNECTION_CLOSED), "the broker closed the connection");
    EXPECT_EQ(library_text(AMQP_STATUS_HEARTBEAT_TIMEOUT), "no heartbeat from the broker");
    EXPECT_EQ(library_text(AMQP_STATUS_TIMEOUT), "the broker did not answer in time");
    EXPECT_EQ(library_text(AMQP_STATUS_BAD_AMQP_DATA), "what answers there does not speak AMQP 0-9-1");
    EXPECT_EQ(library_text(AMQP_STATUS_NO_MEMORY), amqp_error_string2(AMQP_STATUS_NO_MEMORY));
}

TEST(LibraryText, OfASocketErrorIsTheSystemsWhereThereIsOne) {
    for (const int status : {AMQP_STATUS_SOCKET_ERROR, AMQP_STATUS_SSL_ERROR}) {
        errno = ECONNRESET;
        EXPECT_EQ(library_text(status), "Connection reset by peer");
        errno = 0;
        EXPECT_EQ(library_text(status), amqp_error_string2(status));
    }
    errno = ECONNRESET;
    EXPECT_EQ(library_text(AMQP_STATUS_TIMEOUT), "the broker did not answer in time") << "errno is another's here";
}

}  // namespace
}  // namespace claimq::amqp
