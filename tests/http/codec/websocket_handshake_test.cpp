#include "http/codec/websocket_handshake.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

using judgement = handshake_fields::verdict;
using text_fields = std::vector<std::pair<std::string_view, std::string_view>>;

// Of the example in RFC 6455, 1.3.
constexpr std::string_view sample_key = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view sample_accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

handshake_fields collected(const text_fields& fields) {
    handshake_fields found;
    for (const auto& [name, value] : fields)
        found.add(name, value);
    return found;
}

/// A good list in which `name` has `value`, or is missing if that is "-".
text_fields with(text_fields good, std::string_view name, std::string_view value) {
    std::erase_if(good, [&](const auto& each) { return each.first == name; });
    if (value != "-") good.emplace_back(name, value);
    return good;
}

const text_fields good_request{{"Host", "example.org"},
                               {"Upgrade", "websocket"},
                               {"Connection", "Upgrade"},
                               {"Sec-WebSocket-Key", sample_key},
                               {"Sec-WebSocket-Version", "13"}};
const text_fields good_answer{
    {"Upgrade", "websocket"}, {"Connection", "Upgrade"}, {"Sec-WebSocket-Accept", sample_accept}};

TEST(websocket_handshake_test, answers_the_key_of_the_specification) {
    const websocket_accept accept = accept_websocket_key(sample_key);

    EXPECT_EQ((std::string_view{accept.data(), accept.size()}), sample_accept);
}

TEST(websocket_handshake_test, makes_keys_that_it_accepts) {
    std::array<std::byte, 16> random{};
    random.fill(std::byte{0xa7});

    const websocket_key key = make_websocket_key(random);

    EXPECT_TRUE(is_websocket_key({key.data(), key.size()}));
    for (const std::string_view wrong :
         {"", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25jZTEyMzQ1",
          "dGhlIHNhbXBsZSBub25jZTE="}) {
        EXPECT_FALSE(is_websocket_key(wrong)) << wrong;
    }
}

TEST(websocket_handshake_test, judges_requests) {
    struct {
        std::string_view name;
        std::string_view value;
        judgement expected;
    } const cases[] = {
        {"Host", "example.org", judgement::accepted},
        {"Upgrade", "WebSocket", judgement::accepted},
        {"Upgrade", "h2c, websocket", judgement::accepted},
        {"Upgrade", "h2c", judgement::not_asked},
        {"Upgrade", "websocket/13", judgement::not_asked},
        {"Upgrade", "-", judgement::not_asked},
        {"Connection", "keep-alive, upgrade", judgement::accepted},
        {"Connection", ",, UPGRADE ,", judgement::accepted},
        {"Connection", "keep-alive", judgement::not_asked},
        {"Connection", "-", judgement::not_asked},
        {"Sec-WebSocket-Version", "12", judgement::wrong_version},
        {"Sec-WebSocket-Version", "013", judgement::wrong_version},
        {"Sec-WebSocket-Version", "13, 8", judgement::wrong_version},
        {"Sec-WebSocket-Version", "-", judgement::bad},
        {"Sec-WebSocket-Key", "-", judgement::bad},
        {"Sec-WebSocket-Key", "", judgement::bad},
        {"Sec-WebSocket-Key", "dGhlIHNhbXBsZQ==", judgement::bad},
    };
    for (const auto& each : cases) {
        const auto found = collected(with(good_request, each.name, each.value));
        EXPECT_EQ(found.of_request("GET", 11), each.expected) << each.name << ": " << each.value;
    }
}

TEST(websocket_handshake_test, judges_the_request_line) {
    const auto found = collected(good_request);

    EXPECT_EQ(found.of_request("GET", 11), judgement::accepted);
    EXPECT_EQ(found.of_request("POST", 11), judgement::bad);
    EXPECT_EQ(found.of_request("GET", 10), judgement::not_asked);
    EXPECT_EQ(found.key(), sample_key);
}

TEST(websocket_handshake_test, refuses_a_key_or_a_version_that_occurs_twice) {
    for (const std::string_view name : {"sec-websocket-key", "sec-websocket-version"}) {
        auto found = collected(good_request);
        found.add(name, name.ends_with("key") ? sample_key : "13");
        EXPECT_NE(found.of_request("GET", 11), judgement::accepted) << name;
    }
}

TEST(websocket_handshake_test, judges_answers) {
    struct {
        std::string_view name;
        std::string_view value;
        bool expected;
    } const cases[] = {
        {"Server", "x", true},
        {"Upgrade", "WEBSOCKET", true},
        {"Upgrade", "websocket, h2c", false},
        {"Upgrade", "-", false},
        {"Connection", "-", false},
        {"Connection", "close", false},
        {"Sec-WebSocket-Accept", "-", false},
        {"Sec-WebSocket-Accept", "S3pPLMBiTxaQ9kYGzzhZRbK+xOo=", false},
        {"Sec-WebSocket-Extensions", "permessage-deflate", false},
        {"Sec-WebSocket-Extensions", "", true},
        {"Sec-WebSocket-Protocol", "chat", true},
        {"Sec-WebSocket-Protocol", "Chat", false},
        {"Sec-WebSocket-Protocol", "chat, superchat", false},
        {"Sec-WebSocket-Protocol", "", false},
    };
    const std::array<std::string_view, 2> offered{"superchat", "chat"};
    for (const auto& each : cases) {
        const auto found = collected(with(good_answer, each.name, each.value));
        EXPECT_EQ(found.accepts(101, sample_key, offered), each.expected)
            << each.name << ": " << each.value;
    }
    EXPECT_FALSE(collected(good_answer).accepts(200, sample_key, offered));
}

TEST(websocket_handshake_test, chooses_the_clients_first_protocol_that_is_supported) {
    const std::array<std::string_view, 2> supported{"chat", "superchat"};

    EXPECT_EQ(choose_protocol("other, superchat, chat", supported), "superchat");
    EXPECT_EQ(choose_protocol("CHAT", supported), "");
    EXPECT_EQ(choose_protocol("", supported), "");
    EXPECT_EQ(choose_protocol("chat", {}), "");
}

TEST(websocket_handshake_test, allows_pages_of_its_own_host_and_those_that_are_listed) {
    const std::array<std::string_view, 1> listed{"https://friend.example"};

    EXPECT_TRUE(is_allowed_origin("https://example.org", "example.org", {}));
    EXPECT_TRUE(is_allowed_origin("http://Example.org:8080", "example.org:8080", {}));
    EXPECT_TRUE(is_allowed_origin("https://friend.example", "example.org", listed));
    for (const std::string_view foreign :
         {"https://friend.example", "https://example.org.evil", "https://evil/example.org", "null",
          "", "https://", "example.org", "ftp://example.org", "https://example.org:8080"}) {
        EXPECT_FALSE(is_allowed_origin(foreign, "example.org", {})) << foreign;
    }
}

} // namespace
} // namespace simplenet::v0::http::detail
