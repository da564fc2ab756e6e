// The sites of a configuration, asked over a connection.

#include "httpd/serve/sites.hpp"

#include "httpd/config/reader.hpp"

#include "http/server/http_test.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <memory>
#include <string>
#include <string_view>

namespace httpd {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class sites_test : public simplenet::testing::http_test {
protected:
    void write(std::string_view name, std::string_view content) {
        const std::filesystem::path path = directory_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream{path} << content;
    }
    /// Serves sites; `$` is the directory.
    void serve_sites(std::string text, const arrival& by = {}) {
        for (std::size_t at = 0; (at = text.find('$', at)) != std::string::npos;)
            text.replace(at, 1, directory_ / "");
        text = "[[listen]]\naddress = \"127.0.0.1:0\"\n" + text;
        const reading_result read = read_text(text, directory_ / "httpd.toml");
        for (const problem& each : read.problems.sorted())
            EXPECT_NE(each.severity, severity::error) << to_text(each, "configuration");
        const auto made =
            std::make_shared<const sites>(read.configuration.sites, gateway_listener{});
        serve(sites::router_for(made, by));
    }
    std::string ask_for(std::string_view path, std::string_view fields = {},
                        std::string_view method = "GET") {
        return ask(std::string{method} + ' ' + std::string{path} + " HTTP/1.1\r\n" +
                   (fields.contains("Host:") ? "" : "Host: h\r\n") + std::string{fields} +
                   "Connection: close\r\n\r\n");
    }

    simplenet::testing::temporary_directory directory_;
};

MATCHER_P(has_status, status, "") {
    return arg.starts_with("HTTP/1.1 " + std::to_string(status) + ' ');
}

// --- files ---------------------------------------------------------------------------------------

TEST_P(sites_test, files_are_served_and_directories_by_their_index) {
    write("index.html", "front");
    write("sub/second.html", "second");
    write("empty/x", "x");
    serve_sites("[[site]]\nroot = \"$\"\nindex = [\"index.html\", \"second.html\"]\n");

    EXPECT_THAT(ask_for("/"), EndsWith("\r\n\r\nfront"));
    EXPECT_THAT(ask_for("/index.html"), EndsWith("\r\n\r\nfront"));
    EXPECT_THAT(ask_for("/sub/"), EndsWith("\r\n\r\nsecond"));
    EXPECT_THAT(ask_for("/sub?a=b"), HasSubstr("Location: /sub/?a=b\r\n"));
    EXPECT_THAT(ask_for("/empty/"), has_status(404));
    EXPECT_THAT(ask_for("/none"), has_status(404));
}

TEST_P(sites_test, methods_that_files_have_not_are_refused) {
    write("a", "x");
    serve_sites("[[site]]\nroot = \"$\"\n");

    EXPECT_THAT(ask_for("/a", {}, "HEAD"),
                EndsWith("Content-Length: 1\r\nConnection: close\r\n\r\n"));
    EXPECT_THAT(ask_for("/a", {}, "POST"), has_status(405));
    EXPECT_THAT(ask_for("/a", {}, "POST"), HasSubstr("Allow: GET, HEAD, OPTIONS\r\n"));
    EXPECT_THAT(ask_for("/a", {}, "OPTIONS"), has_status(204));
    EXPECT_THAT(ask_for("*", {}, "OPTIONS"), has_status(204));
    EXPECT_THAT(ask_for("/a", {}, "FROB"), has_status(501));
}

TEST_P(sites_test, no_source_of_a_script_is_ever_an_answer) {
    for (const std::string_view name :
         {"a.php", "A.PHP", "b.phtml", "c.phar", "index.php", "d.cgi"})
        write(name, "<?php secret");
    write("sub/index.php", "<?php secret");
    serve_sites("[[site]]\nroot = \"$\"\nindex = [\"index.php\"]\n"
                "error_pages = { 404 = \"/a.php\" }\n"
                "[[site.route]]\nmatch = \"/x/*\"\nfallback = \"/a.php\"\n"
                "[[site.route]]\nmatch = \"/a.php\"\n"
                "[[site.route]]\nmatch = \"/sub/*\"\n"
                "[[site.route]]\nmatch = \"*.cgi\"\nfastcgi = \"127.0.0.1:1\"\n");

    for (const std::string_view path :
         {"/", "/a.php", "/A.PHP", "/b.phtml", "/c.phar", "/x/y", "/x/a.php", "/sub/",
          "/sub/index.php", "/a%2Ephp", "/a.ph%70", "//a.php", "/./a.php", "/x/../a.php", "/d.CGI",
          "/a.php/"}) {
        EXPECT_THAT(ask_for(path), Not(HasSubstr("secret"))) << path;
        EXPECT_THAT(ask_for(path), AnyOf(has_status(404), has_status(502))) << path;
    }
}

TEST_P(sites_test, an_error_has_the_page_of_its_site) {
    write("404.html", "own page");
    serve_sites("[[site]]\nroot = \"$\"\nerror_pages = { 404 = \"/404.html\", 405 = \"/gone\" }\n");

    const std::string missing = ask_for("/none");
    EXPECT_THAT(missing, has_status(404));
    EXPECT_THAT(missing, EndsWith("\r\n\r\nown page"));
    EXPECT_THAT(ask_for("/none", "If-None-Match: *\r\n"), has_status(404));
    EXPECT_THAT(ask_for("/404.html", {}, "POST"), HasSubstr("<h1>405 Method Not Allowed</h1>"));
}

std::string line_of_tag(const std::string& answer) {
    const std::size_t begin = answer.find("ETag: ");
    return answer.substr(begin, answer.find("\r\n", begin) - begin);
}

// Used to be answered with a short text.
TEST_P(sites_test, a_refused_condition_or_range_has_the_page_of_its_site) {
    write("412.html", "own page");
    write("a.txt", "file");
    write("a.txt.gz", "gzip");
    serve_sites("[[site]]\nroot = \"$\"\nheaders = { \"X-Site\" = \"s\" }\n"
                "error_pages = { 412 = \"/412.html\" }\n");
    const std::string tag = line_of_tag(ask_for("/a.txt"));

    for (const std::string coding : {"", "Accept-Encoding: gzip\r\n"}) {
        const std::string changed = ask_for("/a.txt", "If-Match: \"x\"\r\n" + coding);
        EXPECT_THAT(changed, has_status(412));
        EXPECT_THAT(changed, AllOf(HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"),
                                   HasSubstr("\r\nX-Site: s\r\n"), EndsWith("\r\n\r\nown page")));
        EXPECT_THAT(changed, Not(HasSubstr("Content-Encoding")));
        const std::string beyond = ask_for("/a.txt", "Range: bytes=9-\r\n" + coding);
        EXPECT_THAT(beyond, has_status(416));
        EXPECT_THAT(beyond, AllOf(HasSubstr("\r\nContent-Range: bytes */4\r\n"),
                                  HasSubstr("\r\nX-Site: s\r\n"),
                                  HasSubstr("<h1>416 Range Not Satisfiable</h1>")));
    }
    EXPECT_THAT(ask_for("/a.txt", "If-Match: \"x\"\r\n"), HasSubstr("\r\n" + tag + "\r\n"))
        << "of the file, not of the page";
    EXPECT_THAT(ask_for("/a.txt", "If-Match: \"x\"\r\n"),
                AllOf(Not(HasSubstr("Accept-Ranges")), Not(HasSubstr("Last-Modified"))));
    EXPECT_THAT(ask_for("/a.txt", "If-Match: \"x\"\r\n", "HEAD"), EndsWith("close\r\n\r\n"));
}

// A client that repeats a weak tag in If-Match never matches.
TEST_P(sites_test, a_compressed_page_leaves_the_tag_of_the_file_strong) {
    write("412.html", "own page");
    write("a.bin", "file");
    serve_sites("[[site]]\nroot = \"$\"\ncompress = { types = [\"text/*\"], minimum = 1 }\n"
                "error_pages = { 412 = \"/412.html\" }\n");
    const std::string tag = line_of_tag(ask_for("/a.bin"));

    const std::string refused = ask_for("/a.bin", "If-Match: \"x\"\r\nAccept-Encoding: gzip\r\n");

    EXPECT_THAT(refused, has_status(412));
    EXPECT_THAT(refused, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
    EXPECT_THAT(refused, HasSubstr("\r\n" + tag + "\r\n"));
}

TEST_P(sites_test, a_fallback_is_routed_once_when_no_file_is_there) {
    write("index.html", "front");
    write("a.txt", "file");
    write("sub/index.html", "sub");
    write("empty/x", "x");
    serve_sites("[[site]]\nroot = \"$\"\n"
                "[[site.route]]\nmatch = \"/app\"\nanswer = { body = \"the application\" }\n"
                "[[site.route]]\nmatch = \"/*\"\nfallback = \"/app\"\n");

    EXPECT_THAT(ask_for("/a.txt"), EndsWith("file"));
    EXPECT_THAT(ask_for("/"), EndsWith("front"));
    EXPECT_THAT(ask_for("/sub"), has_status(301));
    for (const std::string_view path : {"/none", "/empty/", "/empty", "/a.txt/b", "/x%2Fy"})
        EXPECT_THAT(ask_for(path), EndsWith("the application")) << path;
    EXPECT_THAT(ask_for("/none", {}, "POST"), EndsWith("the application"));
    EXPECT_THAT(ask_for("/a.txt", {}, "POST"), has_status(405));
}

// --- routes --------------------------------------------------------------------------------------

TEST_P(sites_test, the_exact_route_wins_else_the_first_that_matches) {
    serve_sites("[[site]]\n"
                "[[site.route]]\nmatch = \"/a/*\"\nanswer = { body = \"prefix\" }\n"
                "[[site.route]]\nmatch = \"*.x\"\nanswer = { body = \"suffix\" }\n"
                "[[site.route]]\nmatch = \"/a/b\"\n"
                "answer = { status = 418, type = \"text/x\", body = \"exact\" }\n");

    EXPECT_THAT(ask_for("/a/b"), EndsWith("exact"));
    EXPECT_THAT(ask_for("/a/b"), has_status(418));
    EXPECT_THAT(ask_for("/a/b"), HasSubstr("Content-Type: text/x\r\n"));
    EXPECT_THAT(ask_for("/a/c.x"), EndsWith("prefix"));
    EXPECT_THAT(ask_for("/%61/../b/./c.x"), EndsWith("suffix"));
    EXPECT_THAT(ask_for("/a"), has_status(404));
}

TEST_P(sites_test, a_redirect_appends_what_matched_and_keeps_the_query) {
    serve_sites(
        "[[site]]\n"
        "[[site.route]]\nmatch = \"/old/*\"\nredirect = { to = \"/new/\", status = 308 }\n"
        "[[site.route]]\nmatch = \"/top/*\"\nredirect = { to = \"/\" }\n"
        "[[site.route]]\nmatch = \"/one\"\nredirect = { to = \"https://example.org/x?y\" }\n");

    EXPECT_THAT(ask_for("/old/a%20b/%22c?d=e%20f"),
                HasSubstr("Location: /new/a%20b/%22c?d=e%20f\r\n"));
    EXPECT_THAT(ask_for("/old/"), has_status(308));
    EXPECT_THAT(ask_for("/top//evil.org/"), HasSubstr("Location: /evil.org/\r\n"));
    EXPECT_THAT(ask_for("/top/%2F%2Fevil.org"), HasSubstr("Location: /%2F%2Fevil.org\r\n"));
    EXPECT_THAT(ask_for("/top/..//evil.org"), has_status(404));
    EXPECT_THAT(ask_for("/one?z"), HasSubstr("Location: https://example.org/x?y&z\r\n"));
}

// It used to become a part of the host.
TEST_P(sites_test, what_is_appended_to_a_bare_host_is_a_path) {
    serve_sites("[[site]]\n"
                "[[site.route]]\nmatch = \"/*\"\nredirect = { to = \"https://example.org\" }\n");

    EXPECT_THAT(ask_for("/@evil.test"), HasSubstr("Location: https://example.org/@evil.test\r\n"));
    EXPECT_THAT(ask_for("/.evil.test?a"),
                HasSubstr("Location: https://example.org/.evil.test?a\r\n"));
}

TEST_P(sites_test, the_index_of_a_directory_has_its_own_methods) {
    write("index.php", "<?php secret");
    serve_sites("[[site]]\nroot = \"$\"\nindex = [\"index.php\"]\n"
                "[[site.route]]\nmatch = \"*.php\"\nanswer = { body = \"the script\" }\n");

    EXPECT_THAT(ask_for("/", {}, "POST"), EndsWith("the script"));
}

TEST_P(sites_test, sites_are_chosen_by_the_host) {
    serve_sites(
        "[[site]]\nhosts = [\"a.org\"]\n[[site.route]]\nmatch = \"/*\"\nanswer = { body = \"A\" }\n"
        "[[site]]\nhosts = [\"*.b.org\"]\n[[site.route]]\nmatch = \"/*\"\nanswer = { body = \"B\" "
        "}\n");

    EXPECT_THAT(ask_for("/", "Host: A.org:80\r\n"), EndsWith("A"));
    EXPECT_THAT(ask_for("/", "Host: x.b.org\r\n"), EndsWith("B"));
    EXPECT_THAT(ask_for("/", "Host: c.org\r\n"), has_status(421));
    EXPECT_THAT(ask_for("http://x.b.org/", "Host: a.org\r\n"), EndsWith("B")); // RFC 9112, 3.2.2
}

TEST_P(sites_test, headers_of_a_route_replace_those_of_its_site) {
    serve_sites("[[site]]\nheaders = { \"X-A\" = \"site\", \"X-B\" = \"site\" }\n"
                "[[site.route]]\nmatch = \"/r\"\nheaders = { \"x-a\" = \"route\" }\nanswer = { "
                "body = \"\" }\n");

    EXPECT_THAT(ask_for("/r"), HasSubstr("X-B: site\r\nx-a: route\r\n"));
    EXPECT_THAT(ask_for("/none"), HasSubstr("X-A: site\r\nX-B: site\r\n")); // errors, too
}

// RFC 6797, section 7.2.
TEST_P(sites_test, strict_transport_security_is_told_over_tls_alone) {
    serve_sites("[[site]]\ntrusted = [\"127.0.0.1\"]\n"
                "headers = { \"Strict-Transport-Security\" = \"max-age=9\", \"X-A\" = \"a\" }\n"
                "[[site.route]]\nmatch = \"/r\"\nheaders = { \"strict-transport-security\" = "
                "\"max-age=1\" }\nanswer = { body = \"\" }\n");
    const std::string secure = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n";

    EXPECT_THAT(ask_for("/"), AllOf(HasSubstr("X-A: a\r\n"), Not(HasSubstr("max-age"))));
    EXPECT_THAT(ask_for("/r"), AllOf(HasSubstr("X-A: a\r\n"), Not(HasSubstr("max-age"))));
    EXPECT_THAT(ask_for("/", "Host: h\r\n" + secure), HasSubstr("max-age=9\r\n"));
    EXPECT_THAT(ask_for("/r", "Host: h\r\n" + secure),
                AllOf(HasSubstr("max-age=1\r\n"), Not(HasSubstr("max-age=9"))));
}

TEST_P(sites_test, bodies_beyond_the_limit_of_a_route_are_refused) {
    serve_sites("[[site]]\nbody = 4\n"
                "[[site.route]]\nmatch = \"/r\"\nbody = 0\nanswer = { body = \"taken\" }\n"
                "[[site.route]]\nmatch = \"/*\"\nanswer = { body = \"taken\" }\n");
    const auto post = [&](std::string_view path, std::string_view body) {
        return ask("POST " + std::string{path} + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" +
                   "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                   std::string{body});
    };

    EXPECT_THAT(post("/", "four"), EndsWith("taken"));
    EXPECT_THAT(post("/", "fives"), has_status(413));
    EXPECT_THAT(post("/r", std::string(2'000'000, 'x')), EndsWith("taken"));
}

// Used to be answered without them: the length is known only while the body is read.
TEST_P(sites_test, a_chunked_body_beyond_the_limit_has_the_fields_and_the_page_of_its_site) {
    write("413.html", "own page");
    write("a.php", "x");
    serve_sites("[[site]]\nroot = \"$\"\nbody = 4\nheaders = { \"X-Site\" = \"s\" }\n"
                "error_pages = { 413 = \"/413.html\" }\n"
                "[[site.route]]\nmatch = \"*.php\"\nfastcgi = \"127.0.0.1:1\"\n"
                "[[site.route]]\nmatch = \"/*\"\nproxy = \"127.0.0.1:1\"\n");

    for (const std::string path : {"/a.php", "/proxied"}) {
        const std::string answer = ask("POST " + path + " HTTP/1.1\r\nHost: h\r\n" +
                                       "Transfer-Encoding: chunked\r\n\r\n5\r\nfives\r\n0\r\n\r\n");

        EXPECT_THAT(answer, has_status(413)) << path;
        EXPECT_THAT(answer, HasSubstr("\r\nX-Site: s\r\n")) << path;
        EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n")) << path;
        EXPECT_THAT(answer, EndsWith("\r\n\r\nown page")) << path;
    }
}

// --- who may -------------------------------------------------------------------------------------

TEST_P(sites_test, addresses_are_allowed_and_denied) {
    serve_sites("[[site]]\ndeny = [\"127.0.0.0/8\"]\n"
                "[[site.route]]\nmatch = \"/open\"\ndeny = []\nanswer = { body = \"in\" }\n"
                "[[site.route]]\nmatch = \"/some\"\ndeny = []\nallow = [\"192.0.2.0/24\"]\nanswer "
                "= { body = \"in\" }\n");

    EXPECT_THAT(ask_for("/"), has_status(403));
    EXPECT_THAT(ask_for("/open"), EndsWith("in"));
    EXPECT_THAT(ask_for("/some"), has_status(403));
    EXPECT_THAT(ask_for("/some", "X-Forwarded-For: 192.0.2.1\r\n"), has_status(403)); // not trusted
}

TEST_P(sites_test, trusted_proxies_tell_who_the_client_is) {
    serve_sites("[[site]]\ntrusted = [\"127.0.0.1\"]\nallow = [\"192.0.2.0/24\"]\n"
                "[[site.route]]\nmatch = \"/*\"\nanswer = { body = \"in\" }\n");

    EXPECT_THAT(ask_for("/"), has_status(403));
    EXPECT_THAT(ask_for("/", "X-Forwarded-For: 192.0.2.1\r\n"), EndsWith("in"));
    EXPECT_THAT(ask_for("/", "Forwarded: for=192.0.2.1\r\n"), EndsWith("in"));
    EXPECT_THAT(ask_for("/", "X-Forwarded-For: 192.0.2.1, 198.51.100.1\r\n"), has_status(403));
}

TEST_P(sites_test, users_need_their_password) {
    write("users", "ann:$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n"); // secret
    serve_sites("[[site]]\nauth = { realm = \"a \\\"b\\\"\", file = \"$users\" }\n"
                "[[site.route]]\nmatch = \"/*\"\nanswer = { body = \"in\" }\n");

    EXPECT_THAT(ask_for("/"), has_status(401));
    EXPECT_THAT(ask_for("/"),
                HasSubstr("WWW-Authenticate: Basic realm=\"a \\\"b\\\"\", charset=\"UTF-8\"\r\n"));
    EXPECT_THAT(ask_for("/", "Authorization: Basic YW5uOnNlY3JldA==\r\n"), EndsWith("in"));
    EXPECT_THAT(ask_for("/", "Authorization: Basic YW5uOnNlY3JldA==\r\n"), EndsWith("in"));
    EXPECT_THAT(ask_for("/", "Authorization: Basic YW5uOndyb25n\r\n"), has_status(401));
}

TEST_P(sites_test, a_rate_holds_for_all_routes_of_its_site_and_not_for_others) {
    serve_sites(
        "[[site]]\nrate = { requests = 1, per = \"1h\", burst = 1 }\n"
        "[[site.route]]\nmatch = \"/a\"\nanswer = { body = \"in\" }\n"
        "[[site.route]]\nmatch = \"/own\"\nrate = { requests = 1, per = \"1h\" }\nanswer = { body "
        "= \"in\" }\n"
        "[[site.route]]\nmatch = \"/free\"\nrate = { requests = 0 }\nanswer = { body = \"in\" }\n");

    EXPECT_THAT(ask_for("/a"), EndsWith("in"));
    EXPECT_THAT(ask_for("/none"), has_status(404));
    EXPECT_THAT(ask_for("/a"), has_status(429));
    EXPECT_THAT(ask_for("/a"), HasSubstr("Retry-After: 3"));
    EXPECT_THAT(ask_for("/own"), EndsWith("in"));
    EXPECT_THAT(ask_for("/own"), has_status(429));
    EXPECT_THAT(ask_for("/free"), EndsWith("in"));
}

TEST_P(sites_test, a_request_that_is_routed_again_counts_once) {
    write("index.html", "front");
    serve_sites("[[site]]\nroot = \"$\"\nrate = { requests = 1, per = \"1h\" }\n"
                "[[site.route]]\nmatch = \"/app\"\nanswer = { body = \"the application\" }\n"
                "[[site.route]]\nmatch = \"/*\"\nfallback = \"/app\"\n");

    EXPECT_THAT(ask_for("/none"), EndsWith("the application"));
    EXPECT_THAT(ask_for("/none"), has_status(429));
}

// --- listeners that redirect ---------------------------------------------------------------------

TEST_P(sites_test, a_listener_redirects_to_https_at_the_same_name) {
    serve_sites("[[site]]\nroot = \"$\"\ndeny = [\"127.0.0.1\"]\n", {.https_port = 443});

    const std::string answer = ask_for("/a%20b/%2F%3f?c=d%26", "Host: Example.org:80\r\n");
    EXPECT_THAT(answer, has_status(308));
    EXPECT_THAT(answer, HasSubstr("Location: https://Example.org/a%20b/%2F%3F?c=d%26\r\n"));
    EXPECT_THAT(ask_for("//evil/", "Host: h.\r\n"), HasSubstr("Location: https://h/evil/\r\n"));
    EXPECT_THAT(ask_for("http://x/y", "Host: x\r\n"), HasSubstr("Location: https://x/y\r\n"));
    EXPECT_THAT(ask_for("/", "Host: [::1]:80\r\n", "POST"),
                HasSubstr("Location: https://[::1]/\r\n"));
    EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), has_status(400));
}

TEST_P(sites_test, nobody_is_redirected_to_a_name_that_no_site_has) {
    serve_sites("[[site]]\nroot = \"$\"\nhosts = [\"example.org\", \"*.example.net\"]\n",
                {.https_port = 443});

    EXPECT_THAT(ask_for("/", "Host: evil.example\r\n"), has_status(421));
    EXPECT_THAT(ask_for("/", "Host: a.example.net\r\n"),
                HasSubstr("Location: https://a.example.net/\r\n"));
}

TEST_P(sites_test, a_redirection_to_https_names_a_port_that_is_not_443) {
    serve_sites("[[site]]\nroot = \"$\"\n", {.https_port = 8443});

    EXPECT_THAT(ask_for("/x", "Host: h:8080\r\n"), HasSubstr("Location: https://h:8443/x\r\n"));
}

TEST_P(sites_test, proofs_for_a_certificate_are_served_without_a_redirection) {
    write(".well-known/acme-challenge/token", "proof");
    serve_sites("[[site]]\nroot = \"$\"\n", {.https_port = 443});

    EXPECT_THAT(ask_for("/.well-known/acme-challenge/token"), EndsWith("\r\n\r\nproof"));
    EXPECT_THAT(ask_for("/.well-known/acme-challenge/none"), has_status(404));
    EXPECT_THAT(ask_for("/.well-known/acme-challenge/../x"), has_status(308));
    EXPECT_THAT(ask_for("/.well-known/acme-challenge"), has_status(308));
}

TEST_P(sites_test, what_a_trusted_proxy_got_by_https_is_not_redirected) {
    const std::string route = "[[site.route]]\nmatch = \"/*\"\nanswer = { body = \"in\" }\n";
    serve_sites("[[site]]\nhosts = [\"yes\"]\ntrusted = [\"127.0.0.1\"]\n" + route +
                    "[[site]]\nhosts = [\"no\"]\n" + route,
                {.https_port = 443});
    const std::string secure = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n";

    EXPECT_THAT(ask_for("/", "Host: yes\r\n" + secure), EndsWith("in"));
    EXPECT_THAT(ask_for("/", "Host: yes\r\n"), has_status(308));
    EXPECT_THAT(ask_for("/", "Host: no\r\n" + secure), has_status(308));
    EXPECT_THAT(ask_for("/", "Host: other\r\n"), has_status(421));
}

// --- compression, gateways -----------------------------------------------------------------------

TEST_P(sites_test, answers_of_a_site_are_compressed_if_it_says_so) {
    write("a.html", std::string(5000, 'x'));
    serve_sites("[[site]]\nhosts = [\"yes\"]\nroot = \"$\"\ncompress = { types = [\"text/*\"] }\n"
                "[[site]]\nhosts = [\"no\"]\nroot = \"$\"\n");
    const std::string gzip = "Accept-Encoding: gzip\r\n";

    EXPECT_THAT(ask_for("/a.html", "Host: yes\r\n" + gzip),
                HasSubstr("Content-Encoding: gzip\r\n"));
    EXPECT_THAT(ask_for("/a.html", "Host: no\r\n" + gzip), Not(HasSubstr("Content-Encoding")));
}

TEST_P(sites_test, a_backend_that_cannot_be_reached_is_502_with_the_page_of_the_site) {
    write("502.html", "come again");
    serve_sites("[[site]]\nroot = \"$\"\nerror_pages = { 502 = \"/502.html\" }\n"
                "[[site.route]]\nmatch = \"/api/*\"\nproxy = \"unix:$none\"\n");

    const std::string answer = ask_for("/api/x");
    EXPECT_THAT(answer, has_status(502));
    EXPECT_THAT(answer, EndsWith("come again"));
}

TEST_P(sites_test, an_encoded_slash_leads_around_no_password) {
    write("users", "");
    serve_sites("[[site]]\nroot = \"$\"\n"
                "[[site.route]]\nmatch = \"/admin/*\"\nproxy = \"unix:$none\"\n"
                "auth = { realm = \"x\", file = \"$users\" }\n"
                "[[site.route]]\nmatch = \"/*\"\nproxy = \"unix:$none\"\n");

    EXPECT_THAT(ask_for("/admin/x"), has_status(401));
    for (const std::string_view each :
         {"/admin%2Fx", "/%61dmin%2fx", "/x%2F..%2Fadmin/x", "/admin%2F%2E%2E%2Ffoo", "/admin%5Cx"})
        EXPECT_THAT(ask_for(each), has_status(404)) << each;
    EXPECT_THAT(ask_for("/other%2Fx"), has_status(502)); // it is passed on
}

// The application behind a fallback is told what the client has asked for.
TEST_P(sites_test, an_encoded_slash_leads_around_no_password_by_a_fallback) {
    write("users", "");
    write("all", "the application");
    serve_sites("[[site]]\nroot = \"$\"\n"
                "[[site.route]]\nmatch = \"/admin/*\"\nfallback = \"/all\"\n"
                "auth = { realm = \"x\", file = \"$users\" }\n"
                "[[site.route]]\nmatch = \"/all\"\n"
                "[[site.route]]\nmatch = \"/*\"\nfallback = \"/all\"\n");

    EXPECT_THAT(ask_for("/admin/x"), has_status(401));
    EXPECT_THAT(ask_for("/admin%2Fx"), has_status(404));
    EXPECT_THAT(ask_for("/other%2Fx"), EndsWith("the application"));
}

INSTANTIATE_TEST_SUITE_P(backends, sites_test, simplenet::testing::all_backends,
                         simplenet::testing::backend_name);

} // namespace
} // namespace httpd
