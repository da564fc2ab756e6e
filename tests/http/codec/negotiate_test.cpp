#include "http/codec/negotiate.hpp"

#include "http/codec/placed_fields.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

namespace simplenet::v0::testing {
namespace {

using http::detail::accepted_codings;
using http::detail::choose_coding;
using http::detail::content_coding;
using http::detail::read_accept_encoding;

constexpr auto identity = content_coding::identity;
constexpr auto gzip = content_coding::gzip;
constexpr auto br = content_coding::br;
constexpr accepted_codings only_identity{};

accepted_codings read(std::string_view value) {
    const placed_fields fields{{"accept-encoding", value}};
    return read_accept_encoding(fields.entries, fields.text());
}

struct choice {
    std::string_view value;
    std::optional<content_coding> of_all;  // identity, gzip and br
    std::optional<content_coding> of_gzip; // identity and gzip
};

TEST(negotiate_test, the_coding_that_the_client_likes_most_is_chosen) {
    constexpr choice cases[] = {
        // Browsers, curl, and the examples of RFC 9110, section 12.5.3.
        {"gzip, deflate, br, zstd", br, gzip},
        {"gzip, deflate", gzip, gzip},
        {"deflate", identity, identity},
        {"compress, gzip", gzip, gzip},
        {"", identity, identity},
        {"*", br, gzip},
        {"compress;q=0.5, gzip;q=1.0", gzip, gzip},
        {"gzip;q=1.0, identity; q=0.5, *;q=0", gzip, gzip},
        // Preferences.
        {"gzip;q=0.5, br;q=0.4", gzip, gzip},
        {"gzip;q=0.5, br;q=0.501", br, gzip},
        {"identity, gzip;q=0.5", identity, identity},
        {"gzip;q=0.001", gzip, gzip},
        {"identity;q=0.5, *;q=0.4", identity, identity},
        {"gzip;q=0.2, *;q=0.4", br, identity},
        // Exclusions.
        {"gzip;q=0, br", br, identity},
        {"gzip;q=0", identity, identity},
        {"*;q=0", std::nullopt, std::nullopt},
        {"identity;q=0", std::nullopt, std::nullopt},
        {"identity;q=0, br", br, std::nullopt},
        {"*;q=0, identity;q=0.1", identity, identity},
        {"*;q=0, br;q=0.000", std::nullopt, std::nullopt},
        {"gzip, gzip;q=0", identity, identity},
        // Spelling.
        {"GZIP", gzip, gzip},
        {"x-gzip", gzip, gzip},
        {", ,gzip\t;\tq=0.5 ,", gzip, gzip},
        {"gzip;Q=1", gzip, gzip},
    };
    for (const auto& each : cases) {
        EXPECT_EQ(choose_coding(read(each.value), true, true), each.of_all) << each.value;
        EXPECT_EQ(choose_coding(read(each.value), true, false), each.of_gzip) << each.value;
    }
}

TEST(negotiate_test, a_malformed_list_is_answered_in_identity) {
    for (const std::string_view value :
         {"gzip;",        "gzip;q",    "gzip;q=",       "gzip;q=2",  "gzip;q=1.1",
          "gzip;q=1.001", "gzip;q=-1", "gzip;q=0.1234", "gzip;q=.5", "gzip;q=0.5;x=y",
          "gzip;x=y",     "gzip;q =1", "gzip;q= 1",     "gzip;q=a",  "gzip;q=0.a",
          "gzip;q=00",    "gzip br",   ";q=1",          "gz\"ip",    "gzip/1",
          "br, gzip;q=x", "\xe4"})
        EXPECT_EQ(read(value), only_identity) << value;
}

TEST(negotiate_test, qvalues_are_read_exactly) {
    EXPECT_EQ(read("gzip;q=1").gzip, 1000);
    EXPECT_EQ(read("gzip;q=1.").gzip, 1000);
    EXPECT_EQ(read("gzip;q=1.000").gzip, 1000);
    EXPECT_EQ(read("gzip;q=0.5").gzip, 500);
    EXPECT_EQ(read("gzip;q=0.05").gzip, 50);
    EXPECT_EQ(read("gzip;q=0.999").gzip, 999);
    EXPECT_EQ(read("gzip;q=0.").gzip, 0);
}

TEST(negotiate_test, without_a_field_the_answer_is_in_identity) {
    const placed_fields fields{{"Accept", "gzip"}, {"Accept-Encoding-2", "gzip"}};

    EXPECT_EQ(read_accept_encoding(fields.entries, fields.text()), only_identity);
    EXPECT_EQ(choose_coding(only_identity, true, true), identity);
}

TEST(negotiate_test, several_fields_are_one_list) {
    const placed_fields fields{{"Accept-Encoding", "br"}, {"Accept-Encoding", "gzip;q=0.5"}};
    const auto accepted = read_accept_encoding(fields.entries, fields.text());

    EXPECT_EQ(accepted.br, 1000);
    EXPECT_EQ(accepted.gzip, 500);
}

TEST(negotiate_test, what_is_not_available_is_not_chosen) {
    EXPECT_EQ(choose_coding(read("br, gzip;q=0.5"), false, false), identity);
    EXPECT_EQ(choose_coding(read("br, gzip;q=0.5"), true, false), gzip);
    EXPECT_EQ(choose_coding(read("br, identity;q=0"), true, false), std::nullopt);
}

TEST(negotiate_test, a_coding_is_named_as_in_content_encoding) {
    EXPECT_EQ(name_of(gzip), "gzip");
    EXPECT_EQ(name_of(br), "br");
    EXPECT_EQ(name_of(identity), "");
}

} // namespace
} // namespace simplenet::v0::testing
