#include "httpd/config/documents.hpp"
#include "httpd/config/print.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

namespace {

using namespace httpd;
using ::testing::HasSubstr;
using ::testing::Not;

// All kinds of values, none of them a default.
constexpr const char* everything = R"(
workers = 3
pin = true
user = "nobody"
grace = "1500ms"
listen = [{ address = "[::1]:8443", tls = [
    { certificate = "a.pem", key = "/keys/a.key", client_ca = "ca.pem" },
    { certificate = "b.pem", key = "b.key", minimum = "1.3" }] },
  { address = "127.0.0.1:80", proxy_protocol = "required", proxy_from = ["10.0.0.0/8", "::1"] },
  { address = "127.0.0.1:81", redirect_https = true }]
[[site]]
hosts = ["Example.org.", "*.example.org"]
root = "./www"
index = []
listing = true
symlinks = "never"
hidden = true
precompressed = false
compress = { types = ["text/*", "Application/JSON"], minimum = 1000 }
headers = { "X-One" = "1", "X-Two" = "\"quoted\" \\ \u00e9" }
error_pages = { 404 = "/not found.html", 503 = "/503.html" }
trusted = ["127.0.0.1"]
allow = ["192.0.2.0/24"]
deny = ["192.0.2.1"]
auth = { realm = "Friends", file = "users" }
rate = { requests = 10, per = "1m", burst = 5 }
body = "8MiB"
[[site.route]]
match = "*.php"
fastcgi = ["unix:php.sock", { address = "[::1]:9000", weight = 3 }]
keep_connections = 2
connections = 3
streamed = true
script_root = "/srv/app"
allow = []
deny = ["::/0"]
auth = { file = "" }
rate = { requests = 1 }
body = 0
headers = { "x-one" = "other" }
[[site.route]]
match = "/api/*"
proxy = "backend.example:80"
[[site.route]]
match = "/old/*"
redirect = { to = "/new/", status = 308 }
[[site.route]]
match = "/exact path"
answer = { status = 503, type = "text/html", body = "<p>\n" }
[[site.route]]
match = "/*"
fallback = "/index.html"
[limits]
request_line = "4KiB"
body = 5000
keep_alive = "0s"
[log]
access = "logs/access.log"
format = "json"
error = "off"
level = "error"
[status]
address = "127.0.0.1:8081"
hosts = ["status.example.org"]
)";

std::string printed(const std::string& text) {
    const reading_result read = httpd_tests::read(text);
    EXPECT_TRUE(read.problems.can_pass()) << httpd_tests::problems_of(read);
    return print_configuration(read.configuration);
}

TEST(httpd_print_test, what_is_printed_can_be_read_and_is_the_same) {
    const std::string once = printed(everything);

    EXPECT_EQ(printed(once), once);
}

TEST(httpd_print_test, a_configuration_of_defaults_can_be_read_and_is_the_same) {
    const std::string once =
        printed("[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot=\"/\"\n");

    EXPECT_EQ(printed(once), once);
}

TEST(httpd_print_test, every_key_that_is_given_is_printed) {
    const std::string text = printed(everything);

    for (const section* section : all_sections())
        for (const key& key : section->keys)
            EXPECT_THAT(text, HasSubstr(std::string{key.name})) << section->name;
}

TEST(httpd_print_test, defaults_are_marked) {
    const std::string text =
        printed("[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot=\"/\"\n");

    EXPECT_THAT(text, HasSubstr("workers = 0 # default\n"));
    EXPECT_THAT(text, HasSubstr("# user: the user who starts it\n"));
    EXPECT_THAT(text, HasSubstr("compress = { types = [], minimum = \"1KiB\" } # default\n"));
    EXPECT_THAT(text, HasSubstr("address = \"127.0.0.1:0\"\n"));
    EXPECT_THAT(text, Not(HasSubstr("[status]")));
}

TEST(httpd_print_test, paths_begin_at_the_file) {
    const std::string text = printed(everything);

    EXPECT_THAT(text, HasSubstr("root = \"/etc/www\"\n"));
    EXPECT_THAT(text, HasSubstr("certificate = \"/etc/a.pem\", key = \"/keys/a.key\""));
    EXPECT_THAT(text, HasSubstr("access = \"/etc/logs/access.log\"\n"));
    EXPECT_THAT(text, HasSubstr("\"unix:/etc/php.sock\""));
}

TEST(httpd_print_test, a_site_takes_the_limit_of_bodies_from_the_limits) {
    const std::string text = printed("[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot=\"/\"\n"
                                     "[limits]\nbody = 5000\n");

    EXPECT_THAT(text, HasSubstr("body = 5000\n\n[limits]"));
}

TEST(httpd_print_test, a_field_of_a_route_takes_the_place_of_the_sites) {
    const reading_result read = httpd_tests::read(everything);
    const auto& headers = read.configuration.sites.front().routes.front().headers;

    ASSERT_EQ(headers.size(), 2U);
    EXPECT_EQ(headers[0].name, "X-Two");
    EXPECT_EQ(headers[1].value, "other");
}

TEST(httpd_reference_test, the_page_is_that_of_the_table) {
    std::ostringstream page;
    page << std::ifstream{HTTPD_REFERENCE}.rdbuf();

    EXPECT_EQ(page.str(), reference_page())
        << "write it anew: simplenet-httpd --reference > docs/usage/httpd-reference.md";
}

} // namespace
