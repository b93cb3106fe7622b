#include "claimq/claim.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "claimq/utf8.hpp"

namespace claimq {

namespace {

bool is_control(char32_t c) { return c <= 0x1F || (c >= 0x7F && c <= 0x9F); }

// Unicode's White_Space property, less the control characters.
bool is_space(char32_t c) {
    return c == 0x20 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

// Takes the top level's guid out of the stream of tokens and remembers nothing else. nlohmann's SAX parser keeps one
// bit a level and does not recurse (its parser.hpp, sax_parse_internal), so depth costs no stack.
class GuidReader : public nlohmann::json_sax<nlohmann::json> {
public:
    bool null() override { return value(); }
    bool boolean(bool) override { return value(); }
    bool number_integer(number_integer_t) override { return value(); }
    bool number_unsigned(number_unsigned_t) override { return value(); }
    bool number_float(number_float_t, const string_t&) override { return value(); }
    bool binary(binary_t&) override { return value(); }
    bool string(string_t& text) override {
        if (expecting_guid_) guid_ = std::move(text);
        return expecting_guid_ ? expecting_guid_ = false, true : value();
    }
    bool start_object(std::size_t) override { return open(); }
    bool start_array(std::size_t) override { return depth_ == 0 ? value() : open(); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& name) override {
        if (depth_ != 1 || name != "guid") return true;
        if (guid_) return stop("guid is given twice");
        expecting_guid_ = true;
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
        // 406 is "number overflow parsing '…'": the text holds a piece of the claim, so only its kind is told.
        return stop((error.id == 406 ? "number out of range at byte " : "no JSON: syntax error at byte ") +
                    std::to_string(position));
    }

    [[nodiscard]] const std::string& flaw() const { return flaw_; }
    [[nodiscard]] std::optional<std::string>& guid() { return guid_; }

private:
    bool value() {
        if (depth_ == 0) return stop("a claim is a JSON object");
        return expecting_guid_ ? stop("guid is no string") : true;
    }
    bool open() {
        if (expecting_guid_) return stop("guid is no string");
        ++depth_;
        return true;
    }
    bool close() {
        --depth_;
        return true;
    }
    bool stop(std::string reason) {
        flaw_ = std::move(reason);
        return false;
    }

    std::uint64_t depth_ = 0;
    bool expecting_guid_ = false;
    std::optional<std::string> guid_;
    std::string flaw_;
};

// What nlohmann would let pass: it skips a byte order mark, and takes a NUL for the end of the input.
std::string_view flaw_before_parsing(std::string_view body) {
    if (body.starts_with("\xEF\xBB\xBF")) return "starts with a byte order mark (BOM), which JSON does not allow";
    if (body.find('\0') != std::string_view::npos) return "contains a NUL byte";
    if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return "is empty";
    return {};
}

}  // namespace

std::string_view guid_flaw(std::string_view guid) {
    if (guid.empty()) return "guid is empty";
    if (guid.size() > 255) return "guid is longer than 255 bytes";
    char32_t last = 0;
    for (auto rest = guid; !rest.empty();) {
        const auto next = first_code_point(rest);
        if (!next) return "guid is no valid UTF-8";
        if (is_control(next->value)) return "guid contains a control character";
        if (rest.size() == guid.size() && is_space(next->value)) return "guid starts with white space";
        last = next->value;
        rest.remove_prefix(next->bytes);
    }
    return is_space(last) ? "guid ends with white space" : std::string_view{};
}

std::variant<ClaimId, NoClaim> claim_id(std::string_view body) {
    if (const auto flaw = flaw_before_parsing(body); !flaw.empty()) return NoClaim{std::string(flaw)};
    GuidReader reader;
    if (!nlohmann::json::sax_parse(body.begin(), body.end(), &reader)) return NoClaim{reader.flaw()};
    if (!reader.guid()) return NoClaim{"has no guid"};
    if (const auto flaw = guid_flaw(*reader.guid()); !flaw.empty()) return NoClaim{std::string(flaw)};
    return ClaimId{std::move(*reader.guid())};
}

}  // namespace claimq
