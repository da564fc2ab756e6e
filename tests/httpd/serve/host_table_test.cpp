#include "httpd/serve/host_table.hpp"

#include <gtest/gtest.h>
#include <string_view>
#include <vector>

namespace httpd {
namespace {

std::vector<site> sites_with(std::vector<std::vector<std::string>> hosts) {
    std::vector<site> all;
    for (auto& each : hosts)
        all.emplace_back().hosts = std::move(each);
    return all;
}

TEST(host_table_test, a_single_site_has_every_name) {
    const host_table table{sites_with({{"example.org"}})};
    for (const std::string_view host : {"example.org", "other", "", "[::1]:80"})
        EXPECT_EQ(table.find(host), 0U) << host;
}

TEST(host_table_test, names_are_compared_without_case_port_and_final_dot) {
    const host_table table{sites_with({{"example.org"}, {"192.0.2.1", "[2001:db8::1]"}})};
    for (const std::string_view host :
         {"example.org", "EXAMPLE.org", "example.org.", "example.org:8080", "example.org.:80"})
        EXPECT_EQ(table.find(host), 0U) << host;
    for (const std::string_view host : {"192.0.2.1", "192.0.2.1:80", "[2001:DB8::1]:80"})
        EXPECT_EQ(table.find(host), 1U) << host;
    for (const std::string_view host : {"", "www.example.org", "example.orgg", "org", ".", "[::2]"})
        EXPECT_EQ(table.find(host), std::nullopt) << host;
}

TEST(host_table_test, a_name_wins_over_wildcards_and_the_longest_of_those) {
    const host_table table{
        sites_with({{"*.example.org"}, {"*.sub.example.org"}, {"www.example.org"}, {}})};
    EXPECT_EQ(table.find("a.example.org"), 0U);
    EXPECT_EQ(table.find("a.b.example.org"), 0U);
    EXPECT_EQ(table.find("a.sub.example.org"), 1U);
    EXPECT_EQ(table.find("sub.example.org"), 0U);
    EXPECT_EQ(table.find("www.example.org"), 2U);
    EXPECT_EQ(table.find("example.org"), 3U); // not below itself
    EXPECT_EQ(table.find("other"), 3U);
}

TEST(host_table_test, a_host_that_is_too_long_is_no_name) {
    const host_table table{sites_with({{"a"}, {"b"}})};
    EXPECT_EQ(table.find(std::string(100'000, 'a')), std::nullopt);
}

} // namespace
} // namespace httpd
