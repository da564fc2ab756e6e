#include "http/websocket/websocket_ends.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"

#include <simplenet/coro/spawn.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;
using namespace std::string_literals;
using namespace std::string_view_literals;

/// What a client sends to a server that echoes, and all that it gets.
struct exchange {
    std::string name;
    std::string sent;
    std::vector<seen_frame> answers;
};

seen_frame closing(unsigned code, std::string_view reason = {}) {
    return {0x88, close_payload(code, reason)};
}
seen_frame pong(std::string_view payload) {
    return {0x8a, payload};
}
seen_frame text(std::string_view payload) {
    return {0x81, payload};
}

/// A frame with any first byte.
std::string raw_frame(unsigned first, std::string_view payload) {
    std::string bytes = frame(0x80, payload);
    bytes[0] = static_cast<char>(first);
    return bytes;
}

const std::string normal_close = close_frame(1000);

std::vector<exchange> of_sizes() {
    std::vector<exchange> all;
    for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 128U, 65535U, 65536U}) {
        const std::string body(size, '*');
        all.push_back({"text of " + std::to_string(size),
                       text_frame(body) + normal_close,
                       {text(body), closing(1000)}});
        all.push_back({"binary of " + std::to_string(size),
                       frame(0x82, body) + normal_close,
                       {{0x82, body}, closing(1000)}});
    }
    return all;
}

std::vector<exchange> of_pings() {
    std::vector<exchange> all{
        {"empty", ping_frame("") + normal_close, {pong(""), closing(1000)}},
        {"binary",
         ping_frame("\x00\xff\xfe"sv) + normal_close,
         {pong("\x00\xff\xfe"sv), closing(1000)}},
        {"125 bytes",
         ping_frame(std::string(125, '\xfe')) + normal_close,
         {pong(std::string(125, '\xfe')), closing(1000)}},
        {"126 bytes", ping_frame(std::string(126, '\xfe')), {closing(1002)}},
        {"a pong that nobody asked for", frame(0x8a, "x") + normal_close, {closing(1000)}},
        {"a pong and a ping",
         frame(0x8a, "x") + ping_frame("y") + normal_close,
         {pong("y"), closing(1000)}},
    };
    exchange ten{.name = "ten", .sent = {}, .answers = {}};
    for (int count = 0; count < 10; ++count) {
        ten.sent += ping_frame(std::to_string(count));
        ten.answers.push_back(pong(std::to_string(count)));
    }
    ten.sent += normal_close;
    ten.answers.push_back(closing(1000));
    all.push_back(ten);
    return all;
}

/// What follows the first message or ping is wrong.
std::vector<exchange> of_wrong_heads() {
    std::vector<exchange> all;
    const auto add = [&](const std::string& name, const std::string& wrong) {
        all.push_back({name, wrong, {closing(1002)}});
        all.push_back({name + " after a message",
                       text_frame("ok") + wrong + ping_frame("late"),
                       {text("ok"), closing(1002)}});
    };
    for (const unsigned bits : {0x10U, 0x20U, 0x30U, 0x40U, 0x50U, 0x60U, 0x70U})
        add("reserved bits " + std::to_string(bits), raw_frame(0x81 | bits, "x"));
    for (const unsigned code : {3U, 4U, 5U, 6U, 7U, 11U, 12U, 13U, 14U, 15U}) {
        add("opcode " + std::to_string(code), raw_frame(0x80 | code, ""));
        add("opcode " + std::to_string(code) + " with a payload", raw_frame(0x80 | code, "x"));
    }
    add("no mask", text_frame("x", false));
    add("125 in two bytes", "\x81\xfe\x00\x7d"s);
    add("65535 in eight bytes", "\x81\xff\x00\x00\x00\x00\x00\x00\xff\xff"s);
    add("2^63 bytes", "\x81\xff\x80"s);
    return all;
}

std::vector<exchange> of_fragments() {
    const std::string one = frame(0x01, "one ");
    const std::string two = frame(0x80, "two");
    return {
        {"two", one + two + normal_close, {text("one two"), closing(1000)}},
        {"empty ones",
         frame(0x01, "") + frame(0x00, "") + frame(0x80, "") + normal_close,
         {text(""), closing(1000)}},
        {"a ping between",
         one + ping_frame("?") + two + normal_close,
         {pong("?"), text("one two"), closing(1000)}},
        {"pings and pongs between",
         one + frame(0x8a, "") + ping_frame("1") + frame(0x00, "and ") + ping_frame("2") + two +
             normal_close,
         {pong("1"), pong("2"), text("one and two"), closing(1000)}},
        {"a fragmented ping", frame(0x09, "x") + frame(0x80, "y"), {closing(1002)}},
        {"a fragmented pong", frame(0x0a, "x") + frame(0x80, "y"), {closing(1002)}},
        {"a fragmented close", frame(0x08, "\x03\xe8"sv), {closing(1002)}},
        {"a last fragment of nothing", frame(0x80, "x"), {closing(1002)}},
        {"a fragment of nothing", frame(0x00, "x") + text_frame("y"), {closing(1002)}},
        {"a fragment of what has ended",
         one + two + frame(0x00, "x") + text_frame("y"),
         {text("one two"), closing(1002)}},
        {"a message in a message", one + text_frame("two"), {closing(1002)}},
        {"binary in a text", one + frame(0x02, "two"), {closing(1002)}},
        {"a close between", one + close_frame(1000) + two, {closing(1000)}},
    };
}

std::vector<exchange> of_texts() {
    std::vector<exchange> all;
    for (const std::string_view good :
         {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
          "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"}) {
        all.push_back({"good", text_frame(good) + normal_close, {text(good), closing(1000)}});
        for (std::size_t cut = 1; cut < good.size(); ++cut) {
            all.push_back({"good in two",
                           frame(0x01, good.substr(0, cut)) + ping_frame("") +
                               frame(0x80, good.substr(cut)) + normal_close,
                           {pong(""), text(good), closing(1000)}});
            const bool whole = (static_cast<unsigned char>(good[cut]) & 0xc0U) != 0x80U;
            if (!whole) all.push_back({"cut", text_frame(good.substr(0, cut)), {closing(1007)}});
        }
    }
    for (const std::string_view bad :
         {"\x80", "\xbf", "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xed\xa0\x80",
          "\xed\xad\xbf\xed\xb0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff",
          "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80\x65\x64"}) {
        all.push_back({"bad", text_frame(bad), {closing(1007)}});
        all.push_back(
            {"bad in a fragment", frame(0x01, "good") + frame(0x00, bad), {closing(1007)}});
        all.push_back({"binary", frame(0x82, bad) + normal_close, {{0x82, bad}, closing(1000)}});
    }
    // Told before the frame ends, and before the message does.
    all.push_back({"bad early",
                   frame(0x01, "good\xff" + std::string(1000, 'x')).substr(0, 20),
                   {closing(1007)}});
    return all;
}

std::vector<exchange> of_closes() {
    const std::string longest(123, '*');
    std::vector<exchange> all{
        {"without a payload", frame(0x88, ""), {{0x88, ""}}},
        {"of one byte", frame(0x88, "x"), {closing(1002)}},
        {"with a reason", close_frame(1000, "bye"), {closing(1000)}},
        {"with the longest reason", close_frame(1000, longest), {closing(1000)}},
        {"with a longer reason", close_frame(1000, longest + "*"), {closing(1002)}},
        {"with a bad reason", close_frame(1000, "\xed\xa0\x80"), {closing(1007)}},
        {"twice", normal_close + normal_close, {closing(1000)}},
        {"before a ping", normal_close + ping_frame("x"), {closing(1000)}},
        {"before a message", normal_close + text_frame("x"), {closing(1000)}},
        {"after a message", text_frame("x") + normal_close, {text("x"), closing(1000)}},
    };
    for (const unsigned code : {1000U, 1001U, 1002U, 1003U, 1007U, 1008U, 1009U, 1010U, 1011U,
                                1012U, 1013U, 1014U, 3000U, 3999U, 4000U, 4999U}) {
        all.push_back({std::to_string(code), close_frame(code), {closing(code)}});
    }
    for (const unsigned code :
         {0U, 999U, 1004U, 1005U, 1006U, 1015U, 1016U, 1100U, 2000U, 2999U, 5000U, 65535U}) {
        all.push_back({std::to_string(code), close_frame(code), {closing(1002)}});
    }
    return all;
}

task<> echo(websocket peer) {
    co_await echo_messages(peer);
    static_cast<void>(co_await peer.close());
}

/// The peer sends `piece` bytes at a time, as long as the server takes them.
task<> send_in_pieces(duplex_stream& to, std::string_view bytes, std::size_t piece) {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        const auto sent = co_await async_write_all(to, bytes.substr(at, piece));
        if (!sent) co_return; // it may have closed
        if (piece < 100) co_await yield();
    }
}

task<std::vector<seen_frame>> all_answers(duplex_stream& from) {
    std::vector<seen_frame> seen;
    for (;;) {
        seen_frame next = co_await next_frame(from, false);
        if (next == no_frame) co_return seen;
        seen.push_back(std::move(next));
    }
}

task<> exchange_with_echo(const exchange& with, std::size_t piece) {
    auto [ours, theirs] = duplex();
    auto server = spawn(echo(make_websocket(std::move(ours), websocket_role::server)));
    auto sender = spawn(send_in_pieces(theirs, with.sent, piece));

    const auto answers = co_await all_answers(theirs);

    EXPECT_EQ(answers, with.answers) << with.name << ", " << piece << " bytes at a time";
    co_await sender;
    theirs.close();
    co_await server;
}

class websocket_protocol_test : public backend_test {
protected:
    void expect(const std::vector<exchange>& all) {
        run([&]() -> task<> {
            for (const exchange& each : all) {
                co_await exchange_with_echo(each, each.sent.size());
                if (each.sent.size() < 1000) co_await exchange_with_echo(each, 1);
            }
        });
    }
};

TEST_P(websocket_protocol_test, echoes_messages_of_all_sizes) {
    expect(of_sizes());
}
TEST_P(websocket_protocol_test, answers_pings) {
    expect(of_pings());
}
TEST_P(websocket_protocol_test, refuses_frames_with_a_wrong_head) {
    expect(of_wrong_heads());
}
TEST_P(websocket_protocol_test, assembles_fragments_and_refuses_wrong_ones) {
    expect(of_fragments());
}
TEST_P(websocket_protocol_test, accepts_only_text_in_utf8) {
    expect(of_texts());
}
TEST_P(websocket_protocol_test, answers_close_frames) {
    expect(of_closes());
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_protocol_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
