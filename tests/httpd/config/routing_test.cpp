#include "httpd/config/routing.hpp"
#include "httpd/config/syntax.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace {

using namespace httpd;

site site_with(const std::vector<std::string_view>& matches) {
    site made;
    for (const std::string_view each : matches) {
        auto match = parse_match(each);
        EXPECT_TRUE(match) << each;
        made.routes.emplace_back().match = match ? *match : path_match{};
    }
    return made;
}

// As written; "none" if no route takes the path.
std::string taken(const site& site, std::string_view path) {
    const route* const found = route_of(site, path);
    return found == nullptr ? "none" : to_text(found->match);
}

TEST(httpd_routing_test, an_exact_match_comes_first_wherever_it_is) {
    const site site = site_with({"/*", "/a/*", "/a/b"});

    EXPECT_EQ(taken(site, "/a/b"), "/a/b");
    EXPECT_EQ(taken(site, "/a/b/"), "/*");
}

TEST(httpd_routing_test, else_the_first_of_the_file_that_matches) {
    const site site = site_with({"*.php", "/api/*", "/api/v1/*"});

    EXPECT_EQ(taken(site, "/api/v1/x"), "/api/*");
    EXPECT_EQ(taken(site, "/api/x.php"), "*.php");
    EXPECT_EQ(taken(site, "/other"), "none");
}

TEST(httpd_routing_test, a_prefix_ends_in_its_slash) {
    const site site = site_with({"/api/*"});

    EXPECT_EQ(taken(site, "/api/"), "/api/*");
    EXPECT_EQ(taken(site, "/api"), "none");
    EXPECT_EQ(taken(site, "/apix/y"), "none");
}

TEST(httpd_routing_test, a_suffix_is_that_of_the_whole_path) {
    const site site = site_with({"*.php"});

    EXPECT_EQ(taken(site, "/x.php"), "*.php");
    EXPECT_EQ(taken(site, "/x.php/y"), "none");
    EXPECT_EQ(taken(site, "/x.PHP"), "none");
}

// By applications that read paths in other ways than this server.
TEST(httpd_routing_test, a_path_that_may_skip_a_guard_is_noticed) {
    site site = site_with({"/admin/*", "/a%2Fb", "/we%2Fird/*", "*.php", "/free", "/*"});
    site.routes[0].auth.emplace().file = "/users";
    site.routes[3].rate.emplace().requests = 1;
    const auto skips = [&site](std::string_view path) {
        return may_skip_a_guard(site, *route_of(site, path), path);
    };

    for (const std::string_view each :
         {"/admin%2Fx", "/admin%2F", "/x%2F..%2Fadmin/y", "/x/..%2F..%2Fadmin%2F", "/admin\\x",
          "/admin;a=b/x", "/..;/admin/x", "/.%2Fadmin/x", "/%2Fadmin%2F%2F", "/admin;a%2Fx",
          "/admin%2Fx;y", "/x.php;y", "/x.php;%2Fy", "/admin%2Fx.php",
          // out again
          "/admin%2F..%2Ffoo", "/admin%2Fx%2F..%2F..%2Ffoo", "/admin%2F..;/foo",
          "/admin%2Fx\\..\\..\\foo", "/x%2F..%2Fadmin", "/we%2Fird/..%2F..%2F..%2Fadmin%2Fx",
          "/we%2Fird/..;/admin/x"})
        EXPECT_TRUE(skips(each)) << each;
    for (const std::string_view each :
         {"/", "/admin/x", "/admin/a%2Fb", "/group%2Fname", "/a%2Fb", "/a;b/c", "/admin/x;y",
          "/administrator%2Fx", "/admin;x", "/we%2Fird/x", "/free;jsessionid=1", "/free%2F..b"})
        EXPECT_FALSE(skips(each)) << each;
}

TEST(httpd_routing_test, nothing_is_skipped_where_nothing_is_asked) {
    const site site = site_with({"/admin/*", "*.php", "/*"});
    for (const std::string_view each : {"/admin%2Fx", "/a%2F..%2Fb", "/x.php;y", "/..;/x"})
        EXPECT_FALSE(may_skip_a_guard(site, *route_of(site, each), each)) << each;
}

// Such as pictures without a password.
TEST(httpd_routing_test, the_guards_of_the_site_are_not_skipped_either) {
    site site = site_with({"*.png", "/*"});
    site.auth.file = "/users";
    site.routes[0].auth.emplace();
    const std::string_view path = "/secret;.png";
    const route& open = *route_of(site, path);
    EXPECT_EQ(&open, &site.routes[0]);
    EXPECT_TRUE(may_skip_a_guard(site, open, path));
    EXPECT_FALSE(may_skip_a_guard(site, site.routes[1], "/secret;x"));
}

TEST(httpd_routing_test, the_wildcard_is_what_the_star_stands_for) {
    EXPECT_EQ(wildcard_of(*parse_match("/old/*"), "/old/a/b"), "a/b");
    EXPECT_EQ(wildcard_of(*parse_match("/old/*"), "/old/"), "");
    EXPECT_EQ(wildcard_of(*parse_match("*.html"), "/a/b.html"), "a/b");
    EXPECT_EQ(wildcard_of(*parse_match("/old"), "/old"), "");
}

// Against every path of a small alphabet: what one match covers, the other takes alone.
TEST(httpd_routing_test, a_match_covers_another_one_if_it_takes_all_of_its_paths) {
    const site all = site_with({"/a", "/a.b", "/*", "/a/*", "/a/a/*", "*.b", "*.b.b", "*.a"});
    std::vector<std::string> paths{"/"};
    for (std::size_t i = 0; i < paths.size() && paths[i].size() < 6; ++i)
        for (const char each : {'a', 'b', '.', '/'})
            paths.push_back(paths[i] + each);

    for (const route& first : all.routes)
        for (const route& second : all.routes) {
            using enum path_match::form;
            if ((first.match.kind == exact) != (second.match.kind == exact)) continue;
            bool takes_all = true;
            for (const std::string& path : paths)
                takes_all =
                    takes_all && (!matches(second.match, path) || matches(first.match, path));
            EXPECT_EQ(covers(first.match, second.match), takes_all)
                << to_text(first.match) << ' ' << to_text(second.match);
        }
}

TEST(httpd_syntax_test, what_is_parsed_is_written_the_same) {
    for (const std::string_view text :
         {"/", "/a", "/a/", "/*", "/a/b/*", "*.php", "*.tar.gz", "/a%2Fb", "/100%", "/a b",
          "/\xc3\xa9", "*.a%2Fb", "/a%252Fb"}) {
        const auto match = parse_match(text);

        ASSERT_TRUE(match) << text << ' ' << match.error();
        EXPECT_EQ(to_text(*match), text);
    }
}

TEST(httpd_syntax_test, hosts_are_compared_in_one_form) {
    EXPECT_EQ(normal_host("Example.ORG."), "example.org");
    for (const std::string_view text :
         {"localhost", "example.org", "example.org.", "*.example.org", "xn--bcher-kva.example",
          "a_b.example", "192.0.2.1", "[::1]", "1.example"})
        EXPECT_EQ(wrong_host(text), std::nullopt) << text;
}

} // namespace
