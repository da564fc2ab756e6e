#include <simplenet/ip/local_endpoint.hpp>

#include "support/error_of.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace {

using namespace simplenet;
using namespace std::string_view_literals;

static_assert(std::is_trivially_copyable_v<local_endpoint>);
static_assert(std::is_trivially_destructible_v<local_endpoint>);
static_assert(local_endpoint{}.is_unnamed());

local_endpoint local_at(std::string_view path) {
    return local_endpoint::parse(path).value();
}

local_endpoint abstract(std::string_view name) {
    return local_endpoint::abstract(name).value();
}

TEST(local_endpoint_test, a_default_endpoint_is_unnamed) {
    const local_endpoint unnamed;

    EXPECT_TRUE(unnamed.is_unnamed());
    EXPECT_FALSE(unnamed.is_abstract());
    EXPECT_EQ(unnamed.path(), "");
    EXPECT_EQ(unnamed.abstract_name(), "");
    EXPECT_EQ(unnamed.to_string(), "(unnamed)");
}

TEST(local_endpoint_test, a_path_is_taken_as_it_is) {
    const local_endpoint endpoint = local_at("../run//server.sock");

    EXPECT_EQ(endpoint.path(), "../run//server.sock");
    EXPECT_EQ(endpoint.to_string(), "../run//server.sock");
    EXPECT_FALSE(endpoint.is_abstract());
    EXPECT_FALSE(endpoint.is_unnamed());
}

TEST(local_endpoint_test, a_leading_at_sign_belongs_to_the_path) {
    EXPECT_FALSE(local_at("@name").is_abstract());
    EXPECT_NE(local_at("@name"), abstract("name"));
}

TEST(local_endpoint_test, an_empty_path_is_an_invalid_argument) {
    EXPECT_EQ(error_of(local_endpoint::parse("")), std::errc::invalid_argument);
}

TEST(local_endpoint_test, a_path_with_a_nul_is_an_invalid_argument) {
    EXPECT_EQ(error_of(local_endpoint::parse("/tmp/a\0b"sv)), std::errc::invalid_argument);
    EXPECT_EQ(error_of(local_endpoint::parse("\0abstract"sv)), std::errc::invalid_argument);
    EXPECT_EQ(error_of(local_endpoint::parse("/tmp/a\0"sv)), std::errc::invalid_argument);
    EXPECT_EQ(error_of(local_endpoint::parse(std::string(200, '\0'))), std::errc::invalid_argument);
}

TEST(local_endpoint_test, a_path_holds_107_bytes_and_no_more) {
    const std::string longest(107, 'x');

    EXPECT_EQ(local_endpoint::max_name_size, 107U);
    EXPECT_EQ(local_at(longest).path(), longest);
    EXPECT_EQ(error_of(local_endpoint::parse(longest + "x")), std::errc::filename_too_long);
    EXPECT_EQ(error_of(local_endpoint::parse(std::string(4096, 'x'))),
              std::errc::filename_too_long);
}

TEST(local_endpoint_test, an_abstract_name_is_not_a_path) {
    const local_endpoint endpoint = abstract("server");

    EXPECT_TRUE(endpoint.is_abstract());
    EXPECT_FALSE(endpoint.is_unnamed());
    EXPECT_EQ(endpoint.abstract_name(), "server");
    EXPECT_EQ(endpoint.path(), "") << "otherwise a file of that name would be unlinked";
}

TEST(local_endpoint_test, an_abstract_name_is_shown_with_an_at_sign) {
    EXPECT_EQ(abstract("server").to_string(), "@server");
    EXPECT_EQ(abstract("a\0b"sv).to_string(), "@a@b");
}

TEST(local_endpoint_test, an_abstract_name_can_contain_nul) {
    EXPECT_EQ(abstract("a\0b"sv).abstract_name(), "a\0b"sv);
    EXPECT_EQ(abstract("\0"sv).abstract_name(), "\0"sv);
    EXPECT_NE(abstract("a"), abstract("a\0"sv));
}

TEST(local_endpoint_test, an_empty_abstract_name_is_an_invalid_argument) {
    EXPECT_EQ(error_of(local_endpoint::abstract("")), std::errc::invalid_argument);
}

TEST(local_endpoint_test, an_abstract_name_holds_107_bytes_and_no_more) {
    const std::string longest(107, 'x');

    EXPECT_EQ(abstract(longest).abstract_name(), longest);
    EXPECT_EQ(error_of(local_endpoint::abstract(longest + "x")), std::errc::filename_too_long);
}

TEST(local_endpoint_test, endpoints_are_equal_when_kind_and_name_are) {
    EXPECT_EQ(local_at("/run/a"), local_at("/run/a"));
    EXPECT_NE(local_at("/run/a"), local_at("/run/ab"));
    EXPECT_NE(local_at("a"), abstract("a"));
    EXPECT_NE(local_at("a"), local_endpoint{});
    EXPECT_EQ(local_endpoint{}, local_endpoint{});
}

TEST(local_endpoint_test, a_local_endpoint_can_be_a_key) {
    const std::unordered_set<local_endpoint> known{local_endpoint{}, local_at("a"), abstract("a")};

    EXPECT_EQ(known.size(), 3U);
    EXPECT_TRUE(known.contains(abstract("a")));
    EXPECT_FALSE(known.contains(local_at("b")));
}

} // namespace
