// The claim reader, held against a JSON tree: it takes a body if and only if the tree has one fit guid, and gives that
// one; what it says of others quotes nothing.
#include "claimq/claim.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "property.hpp"

namespace claimq {
namespace {

using fuzz::must;

constexpr std::array<std::string_view, 18> white_space{
    " ",      "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002",       "\u2003",       "\u2004", "\u2005",
    "\u2006", "\u2007", "\u2008", "\u2009", "\u200A", "\xE2\x80\xA8", "\xE2\x80\xA9", "\u202F", "\u205F"};
constexpr std::string_view ideographic_space = "\u3000";

bool has_control(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x20 || byte == 0x7F) return true;
        if (byte == 0xC2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0) return true;
    }
    return false;
}

bool has_blank_end(std::string_view text) {
    const auto at_an_end = [&](auto blank) { return text.starts_with(blank) || text.ends_with(blank); };
    return std::ranges::any_of(white_space, at_an_end) || at_an_end(ideographic_space);
}

bool is_utf8_for_json(const std::string& text) {
    try {
        static_cast<void>(nlohmann::json(text).dump());
        return true;
    } catch (const nlohmann::json::type_error&) {
        return false;
    }
}

bool is_fit(const std::string& guid) {
    return !guid.empty() && guid.size() <= 255 && is_utf8_for_json(guid) && !has_control(guid) && !has_blank_end(guid);
}

// The one guid of a claim, read from a tree.
std::optional<std::string> expected(std::string_view body) {
    if (body.starts_with("\xEF\xBB\xBF") || body.find('\0') != std::string_view::npos) return std::nullopt;
    int guids = 0;
    const auto count = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        if (depth == 1 && event == nlohmann::json::parse_event_t::key && parsed == "guid") ++guids;
        return true;
    };
    const auto tree = nlohmann::json::parse(body.begin(), body.end(), count, false);
    if (!tree.is_object() || guids != 1 || !tree["guid"].is_string()) return std::nullopt;
    const auto guid = tree["guid"].get<std::string>();
    return is_fit(guid) ? std::optional(guid) : std::nullopt;
}

// A reason is one of these, the last two followed by a position.
void check_reason(std::string reason) {
    const auto position = reason.find_last_not_of("0123456789") + 1;
    if (reason.substr(0, position).ends_with(" at byte ")) reason.resize(position);
    constexpr std::array<std::string_view, 15> known{"starts with a byte order mark (BOM), which JSON does not allow",
                                                     "contains a NUL byte",
                                                     "is empty",
                                                     "a claim is a JSON object",
                                                     "guid is no string",
                                                     "guid is given twice",
                                                     "has no guid",
                                                     "guid is empty",
                                                     "guid is longer than 255 bytes",
                                                     "guid is no valid UTF-8",
                                                     "guid contains a control character",
                                                     "guid starts with white space",
                                                     "guid ends with white space",
                                                     "number out of range at byte ",
                                                     "no JSON: syntax error at byte "};
    must(std::ranges::find(known, reason) != known.end(), "the reason is in our own words", reason);
}

void check_body(std::string_view body) {
    const auto wanted = expected(body);
    const auto got = claim_id(body);
    if (const auto* flaw = std::get_if<NoClaim>(&got)) {
        must(!wanted, "a claim is not refused", flaw->reason);
        return check_reason(flaw->reason);
    }
    const auto& guid = std::get<ClaimId>(got).guid;
    must(wanted == guid, "the guid is the tree's", guid);
    const auto again = claim_id(nlohmann::json{{"guid", guid}}.dump());
    must(std::holds_alternative<ClaimId>(again) && std::get<ClaimId>(again).guid == guid,
         "the guid written again is read as the same", guid);
}

void check_guid(const std::string& guid) {
    const auto flaw = guid_flaw(guid);
    must(flaw.empty() == is_fit(guid), "guid_flaw() knows the rules", flaw);
    if (!flaw.empty()) check_reason(std::string(flaw));
}

}  // namespace
}  // namespace claimq

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto body = claimq::fuzz::text_of(data, size);
    claimq::check_body(body);
    claimq::check_guid(std::string(body));
    return 0;
}
