// Frame assembly from decoded frames in any order, held against a model of the protocol. A frame's bytes are freed
// right after it was fed, so that nothing can be kept without a copy.
#include <amqp.h>
#include <amqp_framing.h>

#include <memory>
#include <optional>
#include <string>

#include "amqp/incoming.hpp"
#include "claimq/failure.hpp"
#include "described.hpp"
#include "property.hpp"

namespace claimq::amqp {
namespace {

using fuzz::Choices;
using fuzz::must;
using std::to_string;

// "" when a frame completes nothing.
const std::string nothing;
const std::string broken = "broken";

// Bytes on the heap, as exactly as they are long, so that a sanitizer sees one too many.
class Bytes {
public:
    explicit Bytes(std::string_view text) : size_(text.size()), bytes_(std::make_unique<char[]>(size_)) {
        text.copy(bytes_.get(), size_);
    }
    [[nodiscard]] amqp_bytes_t get() const { return {size_, size_ == 0 ? nullptr : bytes_.get()}; }

private:
    std::size_t size_;
    std::unique_ptr<char[]> bytes_;
};

class Broker {
public:
    explicit Broker(std::string_view input) : choices_(input) {}

    void run() {
        while (!choices_.none_left() && !broken_) step();
    }

private:
    enum class Expect { method, header, body };

    void step() {
        switch (choices_.byte() % 16) {
            case 0:
            case 1: return deliver();
            case 2: return returned();
            case 3:
            case 4: return header();
            case 5:
            case 6: return body();
            case 7: return heartbeat();
            case 8: return ack();
            case 9: return nack();
            case 10: return channel_close();
            case 11: return connection_close();
            case 12: return blocked();
            case 13: return small_method();
            case 14: return depth();
            default: return strange_frame();
        }
    }

    void deliver() {
        amqp_basic_deliver_t deliver{};
        deliver.delivery_tag = choices_.number(8);
        deliver.redelivered = choices_.byte() & 1;
        if (expect_ != Expect::method) return method(AMQP_BASIC_DELIVER_METHOD, &deliver, broken);
        expect_ = Expect::header;
        is_returned_ = false;
        start_ = row("deliver", to_string(deliver.delivery_tag), deliver.redelivered ? "again" : "first");
        method(AMQP_BASIC_DELIVER_METHOD, &deliver, nothing);
    }
    void returned() {
        amqp_basic_return_t returned{};
        returned.reply_code = static_cast<std::uint16_t>(choices_.number(2));
        const auto text = choices_.text(choices_.byte());
        const Bytes bytes(text);
        returned.reply_text = bytes.get();
        if (expect_ != Expect::method) return method(AMQP_BASIC_RETURN_METHOD, &returned, broken);
        expect_ = Expect::header;
        is_returned_ = true;
        start_ = to_string(returned.reply_code) + " " + std::string(text);
        method(AMQP_BASIC_RETURN_METHOD, &returned, nothing);
    }

    void header() {
        const auto kind = choices_.byte();
        const Bytes id(choices_.text(choices_.byte()));
        amqp_basic_properties_t properties{};
        properties._flags = (kind & 1u) != 0 ? AMQP_BASIC_MESSAGE_ID_FLAG : 0;
        properties.message_id = id.get();  // without the flag it must not be looked at
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_HEADER;
        frame.payload.properties.class_id = (kind & 2u) != 0 ? 10 : AMQP_BASIC_CLASS;
        frame.payload.properties.body_size = choices_.number((kind & 4u) != 0 ? 8 : 1);
        frame.payload.properties.decoded = &properties;
        const auto size = frame.payload.properties.body_size;
        if (expect_ != Expect::header || (kind & 2u) != 0 || size > largest_body) return feed(frame, broken);
        id_ = (kind & 1u) != 0 ? std::string(static_cast<const char*>(id.get().bytes), id.get().len) : std::string{};
        size_ = size;
        body_.clear();
        expect_ = Expect::body;
        feed(frame, size == 0 ? finish() : nothing);
    }
    void body() {
        const auto text = choices_.text(choices_.byte());
        const Bytes bytes(text);
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_BODY;
        frame.payload.body_fragment = bytes.get();
        if (expect_ != Expect::body || body_.size() + text.size() > size_) return feed(frame, broken);
        body_ += text;
        feed(frame, body_.size() == size_ ? finish() : nothing);
    }
    std::string finish() {
        expect_ = Expect::method;
        return is_returned_ ? row("returned", id_, start_) : start_ + row(id_, body_);
    }

    void ack() {
        amqp_basic_ack_t ack{choices_.number(8), choices_.byte() & 1};
        must_be_between_messages(AMQP_BASIC_ACK_METHOD, &ack,
                                 row("ack", to_string(ack.delivery_tag), ack.multiple ? "multiple" : "one"));
    }
    void nack() {
        amqp_basic_nack_t nack{choices_.number(8), choices_.byte() & 1, choices_.byte() & 1};
        must_be_between_messages(AMQP_BASIC_NACK_METHOD, &nack,
                                 row("nack", to_string(nack.delivery_tag), nack.multiple ? "multiple" : "one"));
    }
    void depth() {
        amqp_queue_declare_ok_t ok{};
        ok.message_count = static_cast<std::uint32_t>(choices_.number(4));
        must_be_between_messages(AMQP_QUEUE_DECLARE_OK_METHOD, &ok, row("depth", to_string(ok.message_count)));
    }
    // Without arguments that matter: decoded is null, so that none is looked at.
    void small_method() {
        switch (choices_.byte() % 6) {
            case 0: return must_be_between_messages(AMQP_BASIC_CANCEL_METHOD, nullptr, "cancelled");
            case 1: return must_be_between_messages(AMQP_BASIC_CANCEL_OK_METHOD, nullptr, "cancel-ok");
            case 2: return must_be_between_messages(AMQP_BASIC_QOS_OK_METHOD, nullptr, nothing);
            case 3: return must_be_between_messages(AMQP_CHANNEL_FLOW_METHOD, nullptr, nothing);
            case 4: return method(AMQP_CONNECTION_UNBLOCKED_METHOD, nullptr, "unblocked");
            default:
                return must_be_between_messages(static_cast<amqp_method_number_t>(choices_.number(1) | 0x7F000000u),
                                                nullptr, nothing);
        }
    }

    void channel_close() {
        amqp_channel_close_t close{};
        close.reply_code = static_cast<std::uint16_t>(choices_.number(2));
        const std::string text(choices_.text(choices_.byte()));
        const Bytes bytes(text);
        close.reply_text = bytes.get();
        expect_ = Expect::method;
        method(AMQP_CHANNEL_CLOSE_METHOD, &close, row("channel closed", to_string(close.reply_code), text));
    }
    void connection_close() {
        amqp_connection_close_t close{};
        close.reply_code = static_cast<std::uint16_t>(choices_.number(2));
        const std::string text(choices_.text(choices_.byte()));
        const Bytes bytes(text);
        close.reply_text = bytes.get();
        method(AMQP_CONNECTION_CLOSE_METHOD, &close, row("connection closed", to_string(close.reply_code), text));
    }
    void blocked() {
        const auto text = choices_.text(choices_.byte());
        const Bytes bytes(text);
        amqp_connection_blocked_t blocked{bytes.get()};
        method(AMQP_CONNECTION_BLOCKED_METHOD, &blocked, row("blocked", text));
    }

    void heartbeat() {
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_HEARTBEAT;
        feed(frame, nothing);
    }
    void strange_frame() {
        amqp_frame_t frame{};
        const auto choice = choices_.byte();
        frame.frame_type = (choice & 1u) != 0 ? AMQP_FRAME_HEARTBEAT : static_cast<std::uint8_t>(choice | 0x40u);
        feed(frame, broken, (choice & 1u) != 0 ? amqp_channel_t{7} : channel);
    }

    void must_be_between_messages(amqp_method_number_t id, void* decoded, const std::string& expected) {
        method(id, decoded, expect_ == Expect::method ? expected : broken);
    }
    void method(amqp_method_number_t id, void* decoded, const std::string& expected) {
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_METHOD;
        frame.payload.method = {id, decoded};
        feed(frame, expected);
    }
    void feed(amqp_frame_t& frame, const std::string& expected, amqp_channel_t number = channel) {
        frame.channel = number;
        broken_ = expected == broken;
        std::string got;
        try {
            if (const auto said = assembler_.feed(frame)) got = described(*said);
        } catch (const Failure& failure) {
            must(failure.status() == ExitStatus::unavailable, "a broken protocol ends the connection", failure.what());
            got = broken;
        }
        must(got == expected, expected.c_str(), got);
        must(broken_ || assembler_.complete() == (expect_ == Expect::method), "it knows whether a message is open");
    }

    Choices choices_;
    FrameAssembler assembler_;
    bool broken_ = false;
    Expect expect_ = Expect::method;
    bool is_returned_ = false;
    std::string start_, id_, body_;
    std::uint64_t size_ = 0;
};

}  // namespace
}  // namespace claimq::amqp

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    claimq::amqp::Broker(claimq::fuzz::text_of(data, size)).run();
    return 0;
}
