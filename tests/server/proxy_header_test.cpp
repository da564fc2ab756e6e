#include "server/proxy_header.hpp"

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/proxy_headers.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using namespace std::string_view_literals;
using detail::parse_proxy_header;
using detail::proxied_addresses;
using detail::proxy_header;
using detail::read_proxy_header;

proxied_addresses addresses(std::string_view source, std::string_view destination) {
    return {endpoint::parse(source).value(), endpoint::parse(destination).value()};
}

struct case_of_a_header {
    std::string header;
    std::optional<proxied_addresses> addresses = {};

    friend std::ostream& operator<<(std::ostream& to, const case_of_a_header& it) {
        return to << ::testing::PrintToString(it.header);
    }
};

std::string with_zeros(std::size_t count) {
    return std::string(count, '\0');
}

/// PROXY TCP4 over a header with ALPN and a checksum; computed with another implementation.
std::string checksummed() {
    std::string header = proxy_v2(0x21, 0x11,
                                  proxy_v4_block + proxy_tlv(1, "h2") +
                                      proxy_tlv(3, "\x00\x00\x00\x00"sv) + proxy_tlv(4, "padding"));
    header.replace(header.find("\x03\x00\x04"sv) + 3, 4, "\xb2\x21\x19\xd9"sv);
    return header;
}

std::vector<case_of_a_header> good_headers() {
    const auto v4 = addresses("192.0.2.1:1000", "198.51.100.2:443");
    const auto v6 = addresses("[2001:db8::1]:1000", "[2001:db8::2]:443");
    const std::string long_v6 = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    return {
        {"PROXY TCP4 192.0.2.1 198.51.100.2 1000 443\r\n", v4},
        {"PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", addresses("0.0.0.0:0", "0.0.0.0:0")},
        {"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
         addresses("255.255.255.255:65535", "255.255.255.255:65535")},
        {"PROXY TCP6 2001:db8::1 2001:DB8::2 1000 443\r\n", v6},
        {"PROXY TCP6 :: :: 0 0\r\n", addresses("[::]:0", "[::]:0")},
        {"PROXY TCP6 1:2:3:4:5:6:7:8 1::8 1 2\r\n", addresses("[1:2:3:4:5:6:7:8]:1", "[1::8]:2")},
        {"PROXY TCP6 ::ffff:192.0.2.1 1:2:3:4:5:6:192.0.2.2 1 2\r\n",
         addresses("[::ffff:192.0.2.1]:1", "[1:2:3:4:5:6:c000:202]:2")},
        {"PROXY TCP6 " + long_v6 + ' ' + long_v6 + " 65535 65535\r\n",
         addresses('[' + long_v6 + "]:65535", '[' + long_v6 + "]:65535")},
        {"PROXY UNKNOWN\r\n"},
        {"PROXY UNKNOWN \r\n"},
        {"PROXY UNKNOWN anything, \r or \n too\r\r\n"},
        {"PROXY UNKNOWN " + long_v6 + ' ' + long_v6 + " 65535 65535\r\n"},

        {proxy_v2(0x21, 0x11, proxy_v4_block), v4},
        {proxy_v2(0x21, 0x21, proxy_v6_block), v6},
        {proxy_v2(0x21, 0x11, proxy_v4_block + proxy_tlv(4, "") + proxy_tlv(5, "id")), v4},
        {proxy_v2(0x21, 0x11, proxy_v4_block + "no TLV"), v4},
        {proxy_v2(0x21, 0x11, proxy_v4_block + "\x04"), v4},
        {proxy_v2(0x21, 0x21, proxy_v6_block + std::string(65535 - 36, 'x')), v6},
        {checksummed(), v4},
        // Datagrams and Unix domain sockets have no addresses that a TCP server could name.
        {proxy_v2(0x21, 0x12, proxy_v4_block)},
        {proxy_v2(0x21, 0x22, proxy_v6_block)},
        {proxy_v2(0x21, 0x31, with_zeros(216))},
        {proxy_v2(0x21, 0x32, with_zeros(216))},
        {proxy_v2(0x21, 0x00, "")},
        {proxy_v2(0x21, 0x00, "whatever")},
        {proxy_v2(0x21, 0x10, "")},
        {proxy_v2(0x21, 0x01, "")},
        {proxy_v2(0x20, 0x00, "")},
        {proxy_v2(0x20, 0x00, proxy_tlv(4, "padding"))},
        {proxy_v2(0x20, 0x11, proxy_v4_block)},
        {proxy_v2(0x20, 0x11, "short")},
        {proxy_v2(0x20, 0xff, "family ignored")},
    };
}

std::vector<std::string> bad_headers() {
    const std::string long_v6 = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    std::string wrong_checksum = checksummed();
    wrong_checksum.back() ^= 1;
    std::string signature_only = proxy_v2(0x21, 0x11, proxy_v4_block);
    signature_only[11] = '\r';
    return {
        "G",
        "GET / HTTP/1.1\r\n",
        "\x16\x03\x01",
        "\0"s + "rest",
        "proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXYTCP4 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY\tTCP4 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP5 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY UNKNOWN\n",
        "PROXY UNKNOWN\r \r\n",
        "PROXY unknown\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 1.2.3.4\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        "PROXY TCP4  1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP4 1.2.3.4  1.2.3.4 1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4  1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1  1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1 \r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\rX",
        "PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n",
        "PROXY TCP4 1.2.3.4.5 1.2.3.4 1 1\r\n",
        "PROXY TCP4 1..3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP4 01.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP4 256.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP4 0x1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP4 ::1 ::1 1 1\r\n",
        "PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP6 ::1 1.2.3.4 1 1\r\n",
        "PROXY TCP6 fe80::1%2 fe80::1%2 1 1\r\n",
        "PROXY TCP6 1::2::3 ::1 1 1\r\n",
        "PROXY TCP6 1:2:3:4:5:6:7 ::1 1 1\r\n",
        "PROXY TCP6 1:2:3:4:5:6:7:8:9 ::1 1 1\r\n",
        "PROXY TCP6 [::1] [::1] 1 1\r\n",
        "PROXY TCP6 12345::1 ::1 1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 00\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 65536 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 +1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 -1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n",
        "PROXY UNKNOWN " + long_v6 + ' ' + long_v6 + " 65535 655350\r\n", // 108 bytes
        "PROXY UNKNOWN " + std::string(1000, ' '),
        "PROXY TCP6 " + std::string(1000, ':'),
        "PROXY TCP6 " + std::string(1000, '1'),

        "\r\n\r\n\0\r\nQUIT\r"s,
        signature_only,
        proxy_v2(0x11, 0x11, proxy_v4_block),
        proxy_v2(0x31, 0x11, proxy_v4_block),
        proxy_v2(0x22, 0x11, proxy_v4_block),
        proxy_v2(0x2f, 0x11, proxy_v4_block),
        proxy_v2(0x21, 0x41, proxy_v4_block),
        proxy_v2(0x21, 0x13, proxy_v4_block),
        proxy_v2(0x21, 0xf0, proxy_v4_block),
        proxy_v2(0x21, 0x11, ""),
        proxy_v2(0x21, 0x11, std::string_view{proxy_v4_block}.substr(1)),
        proxy_v2(0x21, 0x12, std::string_view{proxy_v4_block}.substr(1)),
        proxy_v2(0x21, 0x21, std::string_view{proxy_v6_block}.substr(1)),
        proxy_v2(0x21, 0x31, with_zeros(215)),
        wrong_checksum,
        proxy_v2(0x21, 0x11, proxy_v4_block + proxy_tlv(3, "abc")),
        proxy_v2(0x21, 0x11, proxy_v4_block + proxy_tlv(3, "abcde")),
        proxy_v2(0x20, 0x00, proxy_tlv(3, "abcd")),
    };
}

proxy_header parsed(std::string_view text) {
    return parse_proxy_header(bytes_of(text));
}

/// Parses the first bytes of `text` as a reader would that gets at most `most` bytes at once, and
/// fails if the parser would have it read past `length`.
proxy_header in_pieces(std::string_view text, std::size_t most, std::size_t length) {
    std::size_t have = 0;
    for (;;) {
        const proxy_header judged = parsed(text.substr(0, have));
        if (judged.is != proxy_header::verdict::incomplete) return judged;
        EXPECT_GE(judged.size, 1U);
        if (have == text.size()) return judged;
        have = std::min(text.size(), have + std::min(judged.size, most));
        if (have > length) {
            ADD_FAILURE() << "reads past the header";
            return judged;
        }
    }
}

void expect_complete(const case_of_a_header& expected, const proxy_header& judged) {
    EXPECT_EQ(judged.is, proxy_header::verdict::complete) << expected;
    EXPECT_EQ(judged.size, expected.header.size()) << expected;
    EXPECT_EQ(judged.addresses == expected.addresses, true) << expected;
}

TEST(proxy_header_test, parses_every_kind_of_header) {
    for (const case_of_a_header& each : good_headers())
        expect_complete(each, parsed(each.header));
}

TEST(proxy_header_test, does_not_look_at_what_follows) {
    for (const case_of_a_header& each : good_headers()) {
        for (const std::string_view behind : {"P"sv, "\r\n"sv, "\n"sv, "\0"sv, "GET / HTTP/1.1"sv})
            expect_complete(each, parsed(each.header + std::string{behind}));
    }
}

TEST(proxy_header_test, every_part_of_a_header_is_incomplete) {
    for (const case_of_a_header& each : good_headers()) {
        for (std::size_t size = 0; size < std::min(each.header.size(), std::size_t{300}); ++size) {
            const proxy_header judged = parsed(std::string_view{each.header}.substr(0, size));
            ASSERT_EQ(judged.is, proxy_header::verdict::incomplete) << each << " at " << size;
            ASSERT_GE(judged.size, 1U);
            ASSERT_LE(size + judged.size, each.header.size()) << each << " at " << size;
        }
    }
}

TEST(proxy_header_test, whole_or_in_pieces_the_result_is_the_same) {
    for (const case_of_a_header& each : good_headers()) {
        for (const std::size_t most : {1U, 2U, 3U, 7U, 16U, 70'000U})
            expect_complete(each, in_pieces(each.header + "behind", most, each.header.size()));
    }
    for (const std::string& each : bad_headers()) {
        for (const std::size_t most : {1U, 2U, 3U, 7U, 16U, 70'000U}) {
            EXPECT_EQ(in_pieces(each, most, each.size()).is, proxy_header::verdict::malformed)
                << ::testing::PrintToString(each);
        }
    }
}

TEST(proxy_header_test, refuses_everything_else) {
    for (const std::string& each : bad_headers()) {
        EXPECT_EQ(parsed(each).is, proxy_header::verdict::malformed)
            << ::testing::PrintToString(each);
        EXPECT_EQ(parsed(each + "behind").is, proxy_header::verdict::malformed)
            << ::testing::PrintToString(each);
    }
}

// A peer that waits for an answer to something else must not wait for the time limit.
TEST(proxy_header_test, refuses_at_the_first_byte_that_is_wrong) {
    struct {
        std::string_view fits;
        std::string_view wrong;
    } const cases[] = {
        {"", "G"},
        {"P", "R "},
        {"PROXY TCP", "5"},
        {"PROXY TCP4 ", "a"},
        {"PROXY TCP4 1.2.3.4", "."},
        {"PROXY TCP6 ", "g"},
        {"PROXY TCP4 1.2.3.4 1.2.3.4 6553", "6"},
        {"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r", "\r"},
        {"\r\n\r\n", "\r"},
        {"\r\n\r\n\0\r\nQUIT\n"sv, "\x11"},
        {"\r\n\r\n\0\r\nQUIT\n\x21"sv, "\x13"},
    };
    for (const auto& [fits, wrong] : cases) {
        EXPECT_EQ(parsed(fits).is, proxy_header::verdict::incomplete) << fits;
        EXPECT_EQ(parsed(std::string{fits} + std::string{wrong}).is,
                  proxy_header::verdict::malformed)
            << fits << wrong;
    }
}

TEST(proxy_header_test, tells_how_much_may_be_read_at_once) {
    EXPECT_EQ(parsed("").size, 15U);
    EXPECT_EQ(parsed("\r").size, 15U);
    EXPECT_EQ(parsed("PROXY UNKNOW").size, 3U);
    EXPECT_EQ(parsed("PROXY TCP4 ").size, "0.0.0.0 0.0.0.0 0 0\r\n"sv.size());
    EXPECT_EQ(parsed("PROXY TCP6 ").size, ":: :: 0 0\r\n"sv.size());
    EXPECT_EQ(parsed("PROXY TCP4 192.0.2.").size, "1 0.0.0.0 0 0\r\n"sv.size());
    EXPECT_EQ(parsed("PROXY TCP4 1.2.3.4 1.2.3.4 1").size, " 0\r\n"sv.size());
    EXPECT_EQ(parsed(proxy_v2(0x21, 0x11, std::string(65535, 'x')).substr(0, 16)).size, 65535U);
}

// --- read_proxy_header()
// ---------------------------------------------------------------------------

class read_proxy_header_test : public backend_test {};

/// Reads the header, then what follows it.
task<> expect_read(tcp_stream& stream, const case_of_a_header& expected, std::string_view behind) {
    const auto found = co_await read_proxy_header(stream);
    EXPECT_TRUE(found && *found == expected.addresses) << expected;

    std::string rest(behind.size(), '\0');
    EXPECT_TRUE(co_await async_read_exact(stream, rest));
    EXPECT_EQ(rest, behind) << expected;
}

TEST_P(read_proxy_header_test, reads_no_byte_beyond_the_header) {
    run([]() -> task<> {
        for (const case_of_a_header& each : good_headers()) {
            auto connection = connect_raw();
            connection.theirs.send(each.header + "\r\nbehind it");
            co_await expect_read(connection.ours, each, "\r\nbehind it");
        }
    });
}

TEST_P(read_proxy_header_test, a_header_may_arrive_in_two_parts_cut_anywhere) {
    run([]() -> task<> {
        for (const case_of_a_header& each : good_headers()) {
            const std::string text = each.header + "behind";
            if (text.size() > 300) continue;
            for (std::size_t cut = 0; cut <= each.header.size(); ++cut) {
                auto connection = connect_raw();
                connection.theirs.send(text.substr(0, cut));
                auto reading = spawn(
                    [&]() -> task<> { co_await expect_read(connection.ours, each, "behind"); });
                co_await turns(2);
                connection.theirs.send(text.substr(cut));
                co_await reading;
            }
        }
    });
}

TEST_P(read_proxy_header_test, another_protocol_is_an_error) {
    run([]() -> task<> {
        for (const std::string& each : bad_headers()) {
            auto connection = connect_raw();
            connection.theirs.send(each);
            EXPECT_EQ(error_of(co_await read_proxy_header(connection.ours)),
                      std::errc::protocol_error)
                << ::testing::PrintToString(each);
        }
    });
}

TEST_P(read_proxy_header_test, a_stream_that_ends_within_the_header_is_an_error) {
    run([]() -> task<> {
        const std::string header = proxy_v2(0x21, 0x11, proxy_v4_block);
        for (std::size_t size = 0; size < header.size(); ++size) {
            auto connection = connect_raw();
            connection.theirs.send(header.substr(0, size));
            connection.theirs.shutdown_write();
            EXPECT_EQ(error_of(co_await read_proxy_header(connection.ours)), errc::end_of_stream);
        }
    });
}

TEST_P(read_proxy_header_test, a_time_limit_ends_the_wait_for_a_silent_peer) {
    run([]() -> task<> {
        auto connection = connect_raw();
        connection.theirs.send("PROXY TCP4 ");
        EXPECT_EQ(error_of(co_await with_timeout(read_proxy_header(connection.ours), 1ms)),
                  errc::deadline_exceeded);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, read_proxy_header_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
