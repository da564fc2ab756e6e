#include "httpd/log/access_format.hpp"

#include "httpd/log/access_entry.hpp"

#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace httpd {
namespace {

using namespace std::chrono_literals;
using simplenet::endpoint;
using simplenet::ip_address;

constexpr std::chrono::system_clock::time_point ended{971'211'336s + 250ms};

class access_format_test : public ::testing::Test {
protected:
    void SetUp() override {
        ::setenv("TZ", "PST8PDT,M4.1.0,M10.5.0", 1); // NOLINT(concurrency-mt-unsafe)
        ::tzset();
    }
    void TearDown() override {
        ::setenv("TZ", "UTC0", 1); // NOLINT(concurrency-mt-unsafe)
        ::tzset();
    }

    static std::string line(const access_entry& of, log_format format) {
        time_text times;
        std::vector<char> room(room_for_line(of, format));
        const char* const end = append_line(room.data(), of, format, ended, times);
        return {room.data(), static_cast<std::size_t>(end - room.data())};
    }
    static std::string combined(const access_entry& of) { return line(of, log_format::combined); }
    static std::string json(const access_entry& of) { return line(of, log_format::json); }
};

/// The example in the documentation of Apache's mod_log_config.
access_entry apache_example() {
    return {.peer = endpoint::loopback(40000),
            .user = "frank",
            .method = "GET",
            .target = "/apache_pb.gif",
            .host = "www.example.com",
            .referer = "http://www.example.com/start.html",
            .user_agent = "Mozilla/4.08 [en] (Win98; I ;Nav)",
            .version = 10,
            .status = 200,
            .body_bytes = 2326,
            .duration = 1234567ns,
            .complete = true,
            .secure = true,
            .site = "example.com"};
}

TEST_F(access_format_test, combined_is_the_line_of_apache) {
    EXPECT_EQ(combined(apache_example()),
              "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 "
              "2326 \"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"\n");
}

TEST_F(access_format_test, combined_has_the_time_of_the_beginning) {
    auto entry = apache_example();
    entry.duration = 3s;

    EXPECT_NE(combined(entry).find("[10/Oct/2000:13:55:33 -0700]"), std::string::npos);
}

TEST_F(access_format_test, combined_writes_a_dash_for_what_there_is_not) {
    EXPECT_EQ(combined({.peer = endpoint::loopback(1)}),
              "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"-\" - - \"-\" \"-\"\n");
}

TEST_F(access_format_test, combined_escapes_what_comes_from_outside) {
    auto entry = apache_example();
    entry.user = "a b\"";
    entry.target = "/\"\\\n\x7f\xc3\xa4";
    entry.referer = "\x1b[31m";
    entry.user_agent = "\" 200 1 \"";
    entry.version = 11;

    EXPECT_EQ(combined(entry),
              "127.0.0.1 - a\\x20b\\x22 [10/Oct/2000:13:55:36 -0700] "
              "\"GET /\\x22\\x5c\\x0a\\x7f\\xc3\\xa4 HTTP/1.1\" 200 2326 \"\\x1b[31m\" "
              "\"\\x22 200 1 \\x22\"\n");
}

TEST_F(access_format_test, json_has_every_key) {
    EXPECT_EQ(json(apache_example()),
              R"({"time":"2000-10-10T20:55:36.250Z","client":"127.0.0.1","port":40000,)"
              R"("user":"frank","method":"GET","target":"/apache_pb.gif","version":"1.0",)"
              R"("status":200,"bytes":2326,"seconds":0.001234,"complete":true,"tls":true,)"
              R"("host":"www.example.com","referer":"http://www.example.com/start.html",)"
              R"json("user_agent":"Mozilla/4.08 [en] (Win98; I ;Nav)","site":"example.com"})json"
              "\n");
}

TEST_F(access_format_test, json_has_empty_texts_for_what_there_is_not) {
    EXPECT_EQ(json({.peer = endpoint::loopback(1), .duration = 61s}),
              R"({"time":"2000-10-10T20:55:36.250Z","client":"127.0.0.1","port":1,"user":"",)"
              R"("method":"","target":"","version":"","status":0,"bytes":0,"seconds":61.000000,)"
              R"("complete":false,"tls":false,"host":"","referer":"","user_agent":"","site":""})"
              "\n");
}

TEST_F(access_format_test, json_escapes_what_comes_from_outside) {
    const auto text = json({.method = "A\"B", .target = "/\\\n\xff", .user_agent = "\x7f"});

    EXPECT_NE(text.find(R"("method":"A\"B","target":"/\\\u000a\u00ff")"), std::string::npos);
    EXPECT_NE(text.find(R"("user_agent":"\u007f")"), std::string::npos);
}

TEST_F(access_format_test, addresses_of_both_kinds_are_written) {
    for (const std::string_view each :
         {"0.0.0.0", "9.10.99.100", "255.255.255.255", "2001:db8::1", "fe80::1%3", "::1"}) {
        const auto address = ip_address::parse(each);
        ASSERT_TRUE(address);

        const auto text = combined({.peer = {*address, 1}});

        EXPECT_EQ(text.substr(0, text.find(' ')), each);
    }
}

TEST_F(access_format_test, a_mapped_address_is_written_as_ipv4) {
    const auto address = ip_address::parse("::ffff:192.0.2.1");
    ASSERT_TRUE(address);

    EXPECT_EQ(combined({.peer = {*address, 1}}).find("192.0.2.1 - "), 0U);
}

// A field of 31 KB used to become 180 KB of a line.
TEST_F(access_format_test, long_texts_are_cut_before_they_are_escaped) {
    const std::string hostile = std::string(4095, '\xff') + " \xff tail";
    const std::string longer = std::string(4096, '\xff') + hostile; // a target has twice the room
    const access_entry entry{.peer = endpoint::loopback(1),
                             .user = hostile,
                             .method = hostile,
                             .target = longer,
                             .host = hostile,
                             .referer = hostile,
                             .user_agent = hostile,
                             .site = hostile};
    const std::vector<std::pair<log_format, std::size_t>> texts_and_escapes{
        {log_format::combined, 5 * 4095 + 4096}, {log_format::json, 7 * 4095 + 4096}};

    for (const auto& [format, escapes] : texts_and_escapes) {
        const std::string text = line(entry, format);
        std::size_t found = 0;
        for (std::size_t at = 0; (at = text.find("ff", at)) != std::string::npos; at += 2)
            ++found;

        EXPECT_EQ(found, escapes);
        EXPECT_EQ(text.find("tail"), std::string::npos);
        EXPECT_LT(room_for_line(entry, format), std::size_t{200'000});
    }
}

TEST_F(access_format_test, the_longest_of_everything_fits) {
    const std::string hostile(9000, '\xff');
    const auto address = ip_address::parse("1111:2222:3333:4444:5555:6666:7777:8888%4294967295");
    ASSERT_TRUE(address);
    const access_entry entry{.peer = {*address, 65535},
                             .user = hostile,
                             .method = hostile,
                             .target = hostile,
                             .host = hostile,
                             .referer = hostile,
                             .user_agent = hostile,
                             .version = 11,
                             .status = 4294967295U,
                             .body_bytes = ~std::uint64_t{0},
                             .duration = std::chrono::nanoseconds::max(),
                             .site = hostile};

    // A sanitizer sees a write beyond the room.
    EXPECT_GT(combined(entry).size(), 80000U);
    EXPECT_GT(json(entry).size(), 170000U);
}

} // namespace
} // namespace httpd
