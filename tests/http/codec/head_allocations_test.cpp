// Reading a message does not allocate, unless it has trailers.

#include "http/codec/chunked.hpp"
#include "http/codec/framing.hpp"
#include "http/codec/head.hpp"

#include "support/counted_allocations.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using namespace http::detail;

TEST(head_allocations_test, reading_a_message_does_not_allocate) {
    constexpr std::string_view text =
        "POST /a HTTP/1.1\r\nHost: [::1]:80\r\nExpect: 100-continue\r\n"
        "Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n";
    std::array<field_entry, 10> entries{};
    request_parser parser{{}, entries};
    const auto before = allocations.load();

    const head_state state = parser.parse(text);
    http::detail::framing is;
    const unsigned refused = frame_request(parser.version(), parser.fields(), text.data(), is);
    chunked_decoder decoder;
    std::string_view body = text.substr(parser.size());
    body.remove_prefix(decoder.next(body).consumed);
    for (const char& each : body) // byte by byte, the last CRLF too
        static_cast<void>(decoder.next({&each, 1}));
    const auto end = decoder.next({});

    EXPECT_EQ(allocations.load(), before);
    EXPECT_TRUE(state == head_state::complete && refused == 0 && is.expects_continue);
    EXPECT_EQ(end.kind, chunked_decoder::step::kind::end);
}

} // namespace
} // namespace simplenet::v0::testing
