#include "amqp/incoming.hpp"

#include <amqp_framing.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "claimq/failure.hpp"

namespace claimq::amqp {
namespace {

// The broker's side of one channel, frame by frame. The bytes of a frame are gone as soon as it was fed, as they are
// when the library's buffers are released.
class FrameAssemblerTest : public testing::Test {
protected:
    using Said = std::optional<Incoming>;

    Said method(amqp_method_number_t id, void* decoded = nullptr) {
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_METHOD;
        frame.channel = 1;
        frame.payload.method = {id, decoded};
        return assembler_.feed(frame);
    }
    Said deliver(std::uint64_t tag = 1, bool redelivered = false) {
        amqp_basic_deliver_t deliver{};
        deliver.delivery_tag = tag;
        deliver.redelivered = redelivered ? 1 : 0;
        return method(AMQP_BASIC_DELIVER_METHOD, &deliver);
    }
    Said returned(std::string text = "NO_ROUTE") {
        amqp_basic_return_t returned{};
        returned.reply_code = 312;
        returned.reply_text = {text.size(), text.data()};
        return method(AMQP_BASIC_RETURN_METHOD, &returned);
    }
    Said header(std::uint64_t body_size, std::string message_id = "id", amqp_flags_t flags = AMQP_BASIC_MESSAGE_ID_FLAG,
                std::uint16_t class_id = AMQP_BASIC_CLASS) {
        amqp_basic_properties_t properties{};
        properties._flags = flags;
        properties.message_id = {message_id.size(), message_id.data()};
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_HEADER;
        frame.channel = 1;
        frame.payload.properties.class_id = class_id;
        frame.payload.properties.body_size = body_size;
        frame.payload.properties.decoded = &properties;
        return assembler_.feed(frame);
    }
    Said body(std::string bytes) {
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_BODY;
        frame.channel = 1;
        frame.payload.body_fragment = {bytes.size(), bytes.empty() ? nullptr : bytes.data()};
        return assembler_.feed(frame);
    }
    Said heartbeat() {
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_HEARTBEAT;
        return assembler_.feed(frame);
    }
    Said channel_close(std::uint16_t code, std::string text) {
        amqp_channel_close_t close{};
        close.reply_code = code;
        close.reply_text = {text.size(), text.data()};
        return method(AMQP_CHANNEL_CLOSE_METHOD, &close);
    }
    Said connection_close(std::uint16_t code, std::string text) {
        amqp_connection_close_t close{};
        close.reply_code = code;
        close.reply_text = {text.size(), text.data()};
        return method(AMQP_CONNECTION_CLOSE_METHOD, &close);
    }
    Said blocked(std::string reason) {
        amqp_connection_blocked_t blocked{};
        blocked.reason = {reason.size(), reason.data()};
        return method(AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
    }

    template <typename T>
    static T as(const Said& said) {
        if (!said || !std::holds_alternative<T>(*said)) {
            ADD_FAILURE() << "another value, or none";
            return {};
        }
        return std::get<T>(*said);
    }
    void expect_message(const Said& said, const std::string& id, const std::string& bytes) {
        const auto message = as<incoming::Deliver>(said);
        EXPECT_EQ(message.message_id, id);
        EXPECT_EQ(message.body, bytes);
        EXPECT_TRUE(assembler_.complete());
    }
    // The feeding breaks the protocol: status 69.
    template <typename Feed>
    void expect_broken(const std::string& how, Feed feed) {
        try {
            EXPECT_FALSE(feed()) << how;
            ADD_FAILURE() << "taken: " << how;
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.status(), ExitStatus::unavailable);
            EXPECT_EQ(failure.what(), "the broker broke the protocol: " + how);
        }
    }

    FrameAssembler assembler_;
};

// ---- messages

TEST_F(FrameAssemblerTest, ADeliveryIsPutTogether) {
    EXPECT_TRUE(assembler_.complete());
    EXPECT_FALSE(deliver(7, true));
    EXPECT_FALSE(assembler_.complete());
    EXPECT_FALSE(header(5, "the id"));
    EXPECT_FALSE(assembler_.complete());
    const auto message = as<incoming::Deliver>(body("12345"));
    EXPECT_TRUE(assembler_.complete());
    EXPECT_EQ(message.tag, 7u);
    EXPECT_EQ(message.redelivered, Redelivered::yes);
    EXPECT_EQ(message.message_id, "the id");
    EXPECT_EQ(message.body, "12345");
}

TEST_F(FrameAssemblerTest, AnEmptyBodyHasNoBodyFrame) {
    EXPECT_FALSE(deliver(UINT64_MAX));
    const auto said = header(0);
    expect_message(said, "id", "");
    EXPECT_EQ(as<incoming::Deliver>(said).tag, UINT64_MAX);
    EXPECT_EQ(as<incoming::Deliver>(said).redelivered, Redelivered::no);
}

TEST_F(FrameAssemblerTest, ABodyComesInPieces) {
    EXPECT_FALSE(deliver());
    EXPECT_FALSE(header(10));
    EXPECT_FALSE(body("123"));
    EXPECT_FALSE(body(""));
    EXPECT_FALSE(body(std::string("\0x\0", 3)));
    EXPECT_FALSE(assembler_.complete());
    expect_message(body("7890"), "id", std::string("123\0x\0", 6) + "7890");
}

TEST_F(FrameAssemblerTest, ALargeBodyComesInPieces) {
    const std::string piece(131'064, 'x');
    constexpr int pieces = 100;  // 12.5 MiB: more than is set aside before bytes of it are here
    EXPECT_FALSE(deliver());
    EXPECT_FALSE(header(piece.size() * pieces));
    for (int at = 1; at < pieces; ++at) EXPECT_FALSE(body(piece));
    EXPECT_EQ(as<incoming::Deliver>(body(piece)).body, std::string(piece.size() * pieces, 'x'));
}

TEST_F(FrameAssemblerTest, AMessageWithoutMessageIdHasAnEmptyOne) {
    EXPECT_FALSE(deliver());
    expect_message(header(0, "not meant: its flag is not set", 0), "", "");
    EXPECT_FALSE(deliver());
    expect_message(header(0, "not meant", AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG), "", "");
    EXPECT_FALSE(deliver());
    expect_message(header(0, ""), "", "");
    EXPECT_FALSE(deliver());
    EXPECT_FALSE(header(1, "", 0));
    expect_message(body("x"), "", "x");
}

TEST_F(FrameAssemblerTest, AMessageIdIsArbitraryBytes) {
    const std::string id("a\r\nX-Evil: 1\0\xFF", 14);
    EXPECT_FALSE(deliver());
    expect_message(header(0, id), id, "");
}

TEST_F(FrameAssemblerTest, NothingOfOneMessageIsLeftInTheNext) {
    EXPECT_FALSE(deliver(1, true));
    EXPECT_FALSE(header(3, "first"));
    expect_message(body("abc"), "first", "abc");
    EXPECT_FALSE(deliver(2));
    const auto second = header(0, "x", 0);
    expect_message(second, "", "");
    EXPECT_EQ(as<incoming::Deliver>(second).redelivered, Redelivered::no);
    EXPECT_FALSE(deliver(3));
    EXPECT_FALSE(header(2, "third"));
    expect_message(body("de"), "third", "de");
}

TEST_F(FrameAssemblerTest, AReturnedMessageHasItsIdAndReason) {
    for (const std::string bytes : {"", "the body"}) {
        EXPECT_FALSE(returned());
        auto said = header(bytes.size(), "g1");
        if (!bytes.empty()) {
            EXPECT_FALSE(said);
            EXPECT_FALSE(body(bytes.substr(0, 3)));
            said = body(bytes.substr(3));
        }
        const auto message = as<incoming::Returned>(said);
        EXPECT_EQ(message.message_id, "g1");
        EXPECT_EQ(message.reason, "312 NO_ROUTE");
        EXPECT_TRUE(assembler_.complete());
    }
}

TEST_F(FrameAssemblerTest, HeartbeatsBetweenFramesChangeNothing) {
    EXPECT_FALSE(heartbeat());
    EXPECT_FALSE(deliver());
    EXPECT_FALSE(heartbeat());
    EXPECT_FALSE(header(2));
    EXPECT_FALSE(heartbeat());
    EXPECT_FALSE(body("1"));
    EXPECT_FALSE(heartbeat());
    expect_message(body("2"), "id", "12");
}

// ---- methods

TEST_F(FrameAssemblerTest, ConfirmsAreReadWithTagAndMultiple) {
    for (const amqp_boolean_t multiple : {0, 1}) {
        amqp_basic_ack_t ack{5, multiple};
        const auto acked = as<incoming::Confirmed>(method(AMQP_BASIC_ACK_METHOD, &ack));
        EXPECT_EQ(acked.tag, 5u);
        EXPECT_EQ(acked.multiple, multiple ? Multiple::yes : Multiple::no);
        EXPECT_EQ(acked.how, Confirm::ack);
        amqp_basic_nack_t nack{6, multiple, 0};
        const auto nacked = as<incoming::Confirmed>(method(AMQP_BASIC_NACK_METHOD, &nack));
        EXPECT_EQ(nacked.tag, 6u);
        EXPECT_EQ(nacked.multiple, multiple ? Multiple::yes : Multiple::no);
        EXPECT_EQ(nacked.how, Confirm::nack);
    }
}

TEST_F(FrameAssemblerTest, OtherMethodsAreReadAsWhatTheyMean) {
    as<incoming::ConsumerCancelled>(method(AMQP_BASIC_CANCEL_METHOD));
    as<incoming::CancelOk>(method(AMQP_BASIC_CANCEL_OK_METHOD));
    as<incoming::Unblocked>(method(AMQP_CONNECTION_UNBLOCKED_METHOD));
    EXPECT_EQ(as<incoming::Blocked>(blocked("low on memory")).reason, "low on memory");
    EXPECT_EQ(as<incoming::Blocked>(blocked("")).reason, "");
    amqp_queue_declare_ok_t depth{};
    depth.message_count = 42;
    EXPECT_EQ(as<incoming::Depth>(method(AMQP_QUEUE_DECLARE_OK_METHOD, &depth)).ready, 42u);
    const auto channel = as<incoming::ChannelClosed>(channel_close(404, "NOT_FOUND - no queue"));
    EXPECT_EQ(channel.code, 404);
    EXPECT_EQ(channel.text, "NOT_FOUND - no queue");
    const auto connection = as<incoming::ConnectionClosed>(connection_close(320, "CONNECTION_FORCED"));
    EXPECT_EQ(connection.code, 320);
    EXPECT_EQ(connection.text, "CONNECTION_FORCED");
}

TEST_F(FrameAssemblerTest, LateAnswersThatNobodyWaitsForSayNothing) {
    for (const auto id : {AMQP_BASIC_QOS_OK_METHOD, AMQP_BASIC_CONSUME_OK_METHOD, AMQP_CHANNEL_CLOSE_OK_METHOD,
                          AMQP_CONFIRM_SELECT_OK_METHOD, amqp_method_number_t{0x12345678}}) {
        EXPECT_FALSE(method(id));
        EXPECT_TRUE(assembler_.complete());
    }
}

// ---- in the middle of a message

TEST_F(FrameAssemblerTest, MethodsOfChannel0MayComeInTheMiddle) {
    EXPECT_FALSE(deliver());
    EXPECT_EQ(as<incoming::Blocked>(blocked("low on disk")).reason, "low on disk");
    EXPECT_FALSE(header(4));
    as<incoming::Unblocked>(method(AMQP_CONNECTION_UNBLOCKED_METHOD));
    EXPECT_FALSE(body("12"));
    EXPECT_EQ(as<incoming::ConnectionClosed>(connection_close(320, "shutdown")).text, "shutdown");
    EXPECT_FALSE(assembler_.complete());
    expect_message(body("34"), "id", "1234");
}

TEST_F(FrameAssemblerTest, AChannelClosedInTheMiddleEndsTheMessage) {
    for (int frames = 1; frames <= 3; ++frames) {
        EXPECT_FALSE(deliver());
        EXPECT_FALSE(frames > 1 && header(4, "cut off"));
        EXPECT_FALSE(frames > 2 && body("12"));
        EXPECT_EQ(as<incoming::ChannelClosed>(channel_close(406, "PRECONDITION_FAILED")).code, 406);
        EXPECT_TRUE(assembler_.complete());
        EXPECT_FALSE(deliver(9));
        EXPECT_FALSE(header(2, "next"));
        expect_message(body("ok"), "next", "ok");
    }
}

TEST_F(FrameAssemblerTest, AMethodOfTheChannelInTheMiddleBreaksTheProtocol) {
    for (const auto id : {AMQP_BASIC_DELIVER_METHOD, AMQP_BASIC_RETURN_METHOD, AMQP_BASIC_ACK_METHOD,
                          AMQP_BASIC_CANCEL_METHOD, AMQP_BASIC_QOS_OK_METHOD}) {
        assembler_ = {};
        EXPECT_FALSE(deliver());
        expect_broken("a method in the middle of a message", [&] { return method(id); });
        assembler_ = {};
        EXPECT_FALSE(deliver());
        EXPECT_FALSE(header(2));
        EXPECT_FALSE(body("1"));
        expect_broken("a method in the middle of a message", [&] { return method(id); });
    }
}

// ---- a peer that breaks the protocol

TEST_F(FrameAssemblerTest, AFrameOutOfTurnBreaksTheProtocol) {
    expect_broken("a frame out of turn", [this] { return header(1); });
    expect_broken("a frame out of turn", [this] { return body("1"); });
    EXPECT_FALSE(deliver());
    expect_broken("a frame out of turn", [this] { return body("1"); });
    EXPECT_FALSE(header(2));
    expect_broken("a frame out of turn", [this] { return header(2); });
    expect_broken("a frame out of turn", [this] {
        amqp_frame_t frame{};
        frame.frame_type = 'A';
        return assembler_.feed(frame);
    });
}

TEST_F(FrameAssemblerTest, AFrameOfAChannelThatIsNotOpenBreaksTheProtocol) {
    for (const int type : {AMQP_FRAME_METHOD, AMQP_FRAME_HEADER, AMQP_FRAME_BODY, AMQP_FRAME_HEARTBEAT}) {
        expect_broken("a frame of a channel that is not open", [&] {
            amqp_frame_t frame{};
            frame.frame_type = static_cast<std::uint8_t>(type);
            frame.channel = 2;
            return assembler_.feed(frame);
        });
    }
}

TEST_F(FrameAssemblerTest, ABodyAfterAnEmptyBodyBreaksTheProtocol) {
    EXPECT_FALSE(deliver());
    expect_message(header(0), "id", "");
    expect_broken("a frame out of turn", [this] { return body(""); });
}

TEST_F(FrameAssemblerTest, MoreBodyThanAnnouncedBreaksTheProtocol) {
    EXPECT_FALSE(deliver());
    EXPECT_FALSE(header(3));
    expect_broken("more body than announced", [this] { return body("1234"); });
    assembler_ = {};
    EXPECT_FALSE(deliver());
    EXPECT_FALSE(header(3));
    EXPECT_FALSE(body("12"));
    expect_broken("more body than announced", [this] { return body("34"); });
}

TEST_F(FrameAssemblerTest, AHeaderOfAnotherClassBreaksTheProtocol) {
    EXPECT_FALSE(deliver());
    expect_broken("a header of another class",
                  [this] { return header(1, "id", AMQP_BASIC_MESSAGE_ID_FLAG, AMQP_QUEUE_CLASS); });
}

TEST_F(FrameAssemblerTest, AHugeAnnouncedSizeBreaksTheProtocolOrCostsNothing) {
    for (const std::uint64_t size : {largest_body + 1, std::uint64_t{1} << 40u, UINT64_MAX}) {
        assembler_ = {};
        EXPECT_FALSE(deliver());
        expect_broken("a body larger than 512 MiB", [&] { return header(size); });
    }
    assembler_ = {};
    EXPECT_FALSE(deliver());
    EXPECT_FALSE(header(largest_body));
    EXPECT_FALSE(body("the first of 536870912 bytes"));
    EXPECT_FALSE(assembler_.complete());
}

}  // namespace
}  // namespace claimq::amqp
