#include "claimq/claim.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace claimq {
namespace {

std::string guid_of(const std::string& body) {
    const auto id = claim_id(body);
    if (const auto* flaw = std::get_if<NoClaim>(&id)) {
        ADD_FAILURE() << body.substr(0, 200) << ": " << flaw->reason;
        return {};
    }
    return std::get<ClaimId>(id).guid;
}

std::string reason(const std::string& body) {
    const auto id = claim_id(body);
    if (const auto* good = std::get_if<ClaimId>(&id)) {
        ADD_FAILURE() << body.substr(0, 200) << " was taken as '" << good->guid << "'";
        return {};
    }
    return std::get<NoClaim>(id).reason;
}

struct Refused {
    std::string body;
    std::string naming;  // a piece of the reason
};

void expect_refused(const std::vector<Refused>& rows) {
    for (const auto& row : rows) {
        const auto why = reason(row.body);
        EXPECT_NE(why.find(row.naming), std::string::npos) << row.body.substr(0, 200) << ": " << why;
    }
}

std::string with_guid(const std::string& guid) { return R"({"guid":")" + guid + R"("})"; }

std::string repeated(const std::string& piece, int times) {
    std::string all;
    for (int time = 0; time < times; ++time) all += piece;
    return all;
}

std::string utf8(unsigned c) {
    if (c < 0x80) return {static_cast<char>(c)};
    const auto tail = [c](unsigned shift) { return static_cast<char>(0x80u | ((c >> shift) & 0x3Fu)); };
    if (c < 0x800) return {static_cast<char>(0xC0u | (c >> 6u)), tail(0)};
    return {static_cast<char>(0xE0u | (c >> 12u)), tail(6), tail(0)};
}

std::string escaped(unsigned c) {
    char text[7];
    std::snprintf(text, sizeof text, "\\u%04x", c);
    return text;
}

std::vector<unsigned> control_characters() {
    std::vector<unsigned> all;
    for (unsigned c = 0; c <= 0x1F; ++c) all.push_back(c);
    for (unsigned c = 0x7F; c <= 0x9F; ++c) all.push_back(c);
    return all;
}

// Unicode's White_Space property, less the control characters.
const std::vector<unsigned> spaces{0x20,   0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
                                   0x2007, 0x2008, 0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};

// ---- the document

TEST(Claim, GuidIsTakenFromTheTopLevel) {
    EXPECT_EQ(guid_of(R"({"guid":"g1"})"), "g1");
    EXPECT_EQ(guid_of(" \t\r\n{ \"guid\" :\n\"g1\" }\r\n"), "g1");
    EXPECT_EQ(guid_of(R"({"a":{"guid":"x","guid":"y"},"guid":"g","b":[{"guid":1}],"c":"guid"})"), "g");
    EXPECT_EQ(guid_of(R"({"guid":"g","amount":1.50e3,"n":12345678901234567890123,"z":-0})"), "g");
}

TEST(Claim, GuidIsDecoded) {
    EXPECT_EQ(guid_of(R"({"gu\u0069d":"g"})"), "g");
    EXPECT_EQ(guid_of(R"({"guid":"\u0061\/\\\""})"), "a/\\\"");
    EXPECT_EQ(guid_of(R"({"guid":"caf\u00e9 \ud83d\ude00"})"), "caf\xC3\xA9 \xF0\x9F\x98\x80");
    EXPECT_EQ(guid_of(R"({"guid":")" + repeated("\\u0061", 255) + R"("})"), std::string(255, 'a'));
}

TEST(Claim, ByteOrderMarkIsRefused) {
    expect_refused({{"\xEF\xBB\xBF{\"guid\":\"g1\"}", "BOM"},
                    {"\xEF\xBB\xBF", "BOM"},
                    {"\xFE\xFF\x20{\"guid\":\"g1\"}", "no JSON"}});
}

TEST(Claim, NulIsRefusedWhereverItStands) {
    const std::string body = R"({"guid":"g","a":[1]})";
    for (std::size_t at = 0; at <= body.size(); ++at) {
        auto broken = body;
        broken.insert(at, 1, '\0');
        expect_refused({{broken, "NUL"}});
    }
    expect_refused({{body + std::string(1, '\0') + "garbage", "NUL"}});
}

TEST(Claim, WhatIsNoJsonIsRefused) {
    expect_refused({{"", "empty"},
                    {" \r\n\t", "empty"},
                    {R"({"guid":"g3","amount":NaN})", "no JSON"},
                    {R"({"guid":"g3","amount":Infinity})", "no JSON"},
                    {R"({"guid":"g3","amount":-Infinity})", "no JSON"},
                    {R"({"guid":"g6"}{"guid":"g7"})", "no JSON"},
                    {"{\"guid\":\"g6\"}\n{\"guid\":\"g7\"}", "no JSON"},
                    {R"({"guid":"g"}x)", "no JSON"},
                    {R"({"guid":"g"}])", "no JSON"},
                    {R"({"guid":"g"},)", "no JSON"},
                    {R"({"guid":"g",})", "no JSON"},
                    {R"({"guid":"g" "a":1})", "no JSON"},
                    {R"({"guid":"g","a":[1,]})", "no JSON"},
                    {R"({"guid":"g","a":01})", "no JSON"},
                    {R"({"guid":"g","a":+1})", "no JSON"},
                    {R"({"guid":"g","a":.5})", "no JSON"},
                    {R"({"guid":"g","a":1.})", "no JSON"},
                    {R"({"guid":"g","a":0x10})", "no JSON"},
                    {R"({"guid":"g","a":True})", "no JSON"},
                    {R"({'guid':'g'})", "no JSON"},
                    {R"({guid:"g"})", "no JSON"},
                    {R"({"guid":"g"/* */})", "no JSON"},
                    {"{\"guid\":\"g\"} // end", "no JSON"},
                    {"{\"guid\":\"a\tb\"}", "no JSON"},
                    {"{\"guid\":\"g\",\"a\":\"line\nline\"}", "no JSON"},
                    {R"({"guid":"g","a":"\x41"})", "no JSON"},
                    {R"({"guid":"g","a":"\u12G4"})", "no JSON"},
                    {R"({"guid":"g","a":[}])", "no JSON"},
                    {"\xC2\xA0{\"guid\":\"g\"}", "no JSON"}});
}

TEST(Claim, SyntaxErrorNamesItsByte) {
    EXPECT_EQ(reason(R"({"guid":"g",})"), "no JSON: syntax error at byte 13");
    EXPECT_EQ(reason("x"), "no JSON: syntax error at byte 1");
    EXPECT_EQ(reason(R"({"guid":"g","n":1e400})"), "number out of range at byte 21");
}

TEST(Claim, EveryCutEndIsRefused) {
    const std::string body = R"({"guid":"g1","a":[1.5e3,{"b":null}],"c":"\u00e9"})";
    ASSERT_EQ(guid_of(body), "g1");
    for (std::size_t length = 0; length < body.size(); ++length)
        EXPECT_FALSE(reason(body.substr(0, length)).empty()) << length;
}

TEST(Claim, WhatIsNoObjectIsRefused) {
    for (const char* body : {"[]", "[{\"guid\":\"g\"}]", "null", "true", "false", "1", "-1", "1.5", "\"guid\"", "[[[["})
        EXPECT_EQ(reason(body), "a claim is a JSON object") << body;
}

TEST(Claim, NumbersBeyondADoubleAreRefusedAndAllOthersPass) {
    expect_refused({{R"({"guid":"g","n":1e400})", "number out of range"},
                    {R"({"guid":"g","n":[-1e400]})", "number out of range"},
                    {R"({"guid":"g","n":)" + std::string(5000, '9') + "}", "number out of range"}});
    for (const std::string number : {"1e308", "1e-400", "-0.0", "18446744073709551616", "-9223372036854775809"})
        EXPECT_EQ(guid_of(R"({"guid":"g","n":)" + number + "}"), "g");
}

// ---- UTF-8

TEST(Claim, ABadByteIsRefusedWhereverItStands) {
    const std::string body = R"({"guid":"g1","note":"text","list":["x"]})";
    for (const char bad : {'\xFF', '\xC0', '\x80'}) {
        for (std::size_t at = 0; at <= body.size(); ++at) {
            auto broken = body;
            broken.insert(at, 1, bad);
            EXPECT_FALSE(reason(broken).empty()) << at;
        }
    }
}

TEST(Claim, BadUtf8IsRefusedInAnyString) {
    for (const std::string bad : {"\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\xAF", "\xED\xA0\x80", "\xED\xBF\xBF",
                                  "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98"}) {
        expect_refused({{R"({"guid":"a)" + bad + R"("})", "no JSON"},
                        {R"({"guid":"g","a":")" + bad + R"("})", "no JSON"},
                        {R"({"guid":"g",")" + bad + R"(":1})", "no JSON"},
                        {R"({"guid":"g","a":[{"b":")" + bad + R"("}]})", "no JSON"}});
    }
}

TEST(Claim, ALoneSurrogateInTheGuidIsRefused) {
    for (const std::string half : {R"(\ud800)", R"(\udbff)", R"(\udc00)", R"(\udfff)", R"(\ud800\ud800)", R"(\ud800x)",
                                   R"(\udc00\ud800)", R"(\ud800\u0041)"})
        EXPECT_FALSE(reason(with_guid("g" + half)).empty()) << half;
}

// ---- the guid

TEST(Claim, AGuidIsNeeded) {
    for (const char* body : {"{}", R"({"id":"g"})", R"({"Guid":"g"})", R"({"guid ":"g"})", R"({"a":{"guid":"g"}})",
                             R"({"a":[{"guid":"g"}]})", R"({"guid\u0000":"g"})"})
        EXPECT_EQ(reason(body), "has no guid") << body;
}

TEST(Claim, AGuidIsAString) {
    for (const std::string value :
         {"9196877626998784", "-1", "1.5", "null", "true", "false", "[]", "[\"g\"]", "{}", R"({"guid":"g"})"})
        EXPECT_EQ(reason(R"({"guid":)" + value + "}"), "guid is no string") << value;
}

TEST(Claim, SecondGuidIsRefusedEvenWhenEscaped) {
    for (const char* body :
         {R"({"guid":"a","guid":"b"})", R"({"guid":"a","guid":"a"})", R"({"guid":"a","gu\u0069d":"b"})",
          R"({"\u0067\u0075\u0069\u0064":"a","guid":"a"})", R"({"guid":"a","x":{"y":[]},"guid":null})"})
        EXPECT_EQ(reason(body), "guid is given twice") << body;
    EXPECT_EQ(guid_of(R"({"a":1,"guid":"g","a":2})"), "g") << "other names may be given twice";
}

TEST(Claim, AGuidHas1To255Bytes) {
    EXPECT_EQ(reason(with_guid("")), "guid is empty");
    EXPECT_EQ(guid_of(with_guid("a")), "a");
    EXPECT_EQ(guid_of(with_guid(std::string(255, 'a'))), std::string(255, 'a'));
    EXPECT_EQ(reason(with_guid(std::string(256, 'a'))), "guid is longer than 255 bytes");
    EXPECT_EQ(guid_of(with_guid(repeated("€", 85))), repeated("€", 85));
    EXPECT_EQ(reason(with_guid(repeated("€", 86))), "guid is longer than 255 bytes");
    EXPECT_EQ(reason(with_guid(repeated("\\u20ac", 86))), "guid is longer than 255 bytes");
    EXPECT_EQ(reason(with_guid(std::string(100'000, 'a'))), "guid is longer than 255 bytes");
}

TEST(Claim, AGuidHasNoControlCharacter) {
    for (const unsigned c : control_characters()) {
        EXPECT_EQ(reason(with_guid("a" + escaped(c) + "b")), "guid contains a control character") << c;
        EXPECT_EQ(reason(with_guid(escaped(c))), "guid contains a control character") << c;
        if (c >= 0x7F) {
            EXPECT_EQ(reason(with_guid("a" + utf8(c))), "guid contains a control character") << c;
        }
    }
    EXPECT_EQ(reason(with_guid("a\\nb")), "guid contains a control character");
    EXPECT_EQ(guid_of(with_guid("~\\u00a1")), "~\xC2\xA1") << "the neighbours of U+007F and U+009F";
}

TEST(Claim, AGuidHasNoWhiteSpaceAtItsEnds) {
    for (const unsigned c : spaces) {
        for (const auto& space : {utf8(c), escaped(c)}) {
            EXPECT_EQ(reason(with_guid(space + "a")), "guid starts with white space") << c;
            EXPECT_EQ(reason(with_guid("a" + space)), "guid ends with white space") << c;
            EXPECT_EQ(reason(with_guid(space)), "guid starts with white space") << c;
            EXPECT_EQ(guid_of(with_guid("a" + space + "b")), "a" + utf8(c) + "b");
        }
    }
}

TEST(GuidFlaw, JudgesBytesThatNoJsonParserHasSeen) {
    EXPECT_EQ(guid_flaw("g"), "");
    EXPECT_EQ(guid_flaw(std::string(255, 'a')), "");
    EXPECT_EQ(guid_flaw(""), "guid is empty");
    EXPECT_EQ(guid_flaw(std::string(256, 'a')), "guid is longer than 255 bytes");
    EXPECT_EQ(guid_flaw(std::string_view("a\0b", 3)), "guid contains a control character");
    for (const char* bad : {"\xFF", "a\xC3", "\xED\xA0\x80", "\xC0\x80", "a\x80z"})
        EXPECT_EQ(guid_flaw(bad), "guid is no valid UTF-8") << bad;
    for (const unsigned c : control_characters())
        EXPECT_EQ(guid_flaw("a" + utf8(c) + "b"), "guid contains a control character") << c;
    for (const unsigned c : spaces) EXPECT_EQ(guid_flaw("a" + utf8(c)), "guid ends with white space") << c;
}

// ---- size and depth

TEST(Claim, DepthCostsNoStack) {
    constexpr int deep = 1'000'000;
    const auto arrays = std::string(deep, '[') + std::string(deep, ']');
    EXPECT_EQ(guid_of(R"({"a":)" + arrays + R"(,"guid":"g"})"), "g");
    const auto objects = repeated(R"({"guid":)", deep / 10) + "1" + std::string(deep / 10, '}');
    EXPECT_EQ(guid_of(R"({"a":)" + objects + R"(,"guid":"g"})"), "g");
    expect_refused({{R"({"guid":"g","a":)" + std::string(deep, '['), "no JSON"}});
}

TEST(Claim, LongStringsPass) {
    const std::string long_text(2 * 1'048'576, 'x');
    EXPECT_EQ(guid_of(R"({"a":")" + long_text + R"(","guid":"g"})"), "g");
    EXPECT_EQ(guid_of(R"({")" + long_text + R"(":1,"guid":"g"})"), "g");
}

// ---- what is said

TEST(Claim, ReasonsQuoteNothingOfTheBody) {
    for (const std::string body :
         {R"(SECRET)", R"({"guid":"g","a":SECRET})", R"({"SECRET":"SECRET"})", R"({"guid":"SECRET","guid":"SECRET"})",
          R"({"guid":"SECRET\u0001"})", R"({"guid":" SECRET"})", R"({"guid":"g","SECRET" 1})", R"("SECRET")",
          R"({"guid":["SECRET"]})", "{\"guid\":\"SECRET\xFF\"}", "{\"guid\":\"SECRET\n\"}",
          R"({"guid":"SECRET\ud800"})", R"({"guid":"SECRET)", R"({"guid":"g"}SECRET)", "\xEF\xBB\xBFSECRET",
          R"({"guid":"g","n":tSECRET})"}) {
        EXPECT_EQ(reason(body).find("SECRET"), std::string::npos) << reason(body);
    }
    EXPECT_EQ(reason(R"({"guid":"g","n":4711e400})").find("4711"), std::string::npos);
    EXPECT_EQ(reason(with_guid("SECRET" + std::string(300, 'x'))).find("SECRET"), std::string::npos);
}

}  // namespace
}  // namespace claimq
