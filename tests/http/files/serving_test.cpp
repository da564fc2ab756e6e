// Files that a router serves.

#include <simplenet/http/router.hpp>

#include "http/server/http_test.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <string>
#include <system_error>

namespace simplenet::v0 {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class http_files_test : public testing::http_test {
protected:
    void write(std::string_view name, std::string_view content) {
        std::ofstream{directory_ / name} << content;
    }
    void serve_files(std::string_view prefix, const http::static_options& options = {}) {
        http::router routes;
        routes.files(prefix, directory_ / "", options);
        serve(std::move(routes));
    }
    std::string get(std::string_view path, std::string_view fields = {}) {
        return ask("GET " + std::string{path} + " HTTP/1.1\r\nHost: h\r\n" + std::string{fields} +
                   "\r\n");
    }

    testing::temporary_directory directory_;
};

TEST_P(http_files_test, files_are_served_with_their_type_and_validators) {
    write("a.txt", "hello");
    serve_files("/");

    const std::string all = get("/a.txt");

    EXPECT_THAT(all, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(all, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
    EXPECT_THAT(all, HasSubstr("\r\nETag: "));
    EXPECT_THAT(all, HasSubstr("\r\nLast-Modified: "));
    EXPECT_THAT(all, EndsWith("\r\n\r\nhello"));
}

TEST_P(http_files_test, what_is_not_there_is_404) {
    write(".hidden", "secret");
    write("a.txt", "hello");
    std::filesystem::create_directory(directory_ / "sub");
    write("sub/c.txt", "hello");
    std::filesystem::create_symlink("/etc/passwd", directory_ / "out");
    serve_files("/");

    for (const char* each : {"/b.txt", "/.hidden", "/a.txt/", "/a.txt/b", "/sub%2Fc.txt",
                             "/sub%2fc.txt", "/sub%252Fc.txt", "/out", "/"}) {
        EXPECT_THAT(get(each), StartsWith("HTTP/1.1 404")) << each;
    }
}

TEST_P(http_files_test, directories_are_redirected_to_their_index) {
    std::filesystem::create_directory(directory_ / "d");
    write("d/index.html", "<p>");
    serve_files("/files/");

    EXPECT_THAT(get("/files/d?x=1"), HasSubstr("\r\nLocation: /files/d/?x=1\r\n"));
    EXPECT_THAT(get("/files/d/"), EndsWith("\r\n\r\n<p>"));
    EXPECT_THAT(get("/files"), HasSubstr("\r\nLocation: /files/\r\n"));
}

TEST_P(http_files_test, a_directory_may_be_listed) {
    write("a <b>.txt", "hello");
    serve_files("/", {.listing = true});

    const std::string all = get("/");

    EXPECT_THAT(all, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(all, HasSubstr("a &lt;b&gt;.txt"));
}

TEST_P(http_files_test, precompressed_files_are_chosen_by_what_the_client_accepts) {
    write("a.txt", "hello");
    write("a.txt.gz", "GZIP");
    serve_files("/", {.cache_control = "max-age=1"});

    const std::string compressed = get("/a.txt", "Accept-Encoding: gzip\r\n");
    EXPECT_THAT(compressed, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
    EXPECT_THAT(compressed, HasSubstr("\r\nVary: Accept-Encoding\r\n"));
    EXPECT_THAT(compressed, HasSubstr("\r\nCache-Control: max-age=1\r\n"));
    EXPECT_THAT(compressed, HasSubstr("\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    EXPECT_THAT(compressed, EndsWith("GZIP"));
    const std::string plain = get("/a.txt");
    EXPECT_THAT(plain, HasSubstr("\r\nVary: Accept-Encoding\r\n"));
    EXPECT_THAT(plain, Not(HasSubstr("Content-Encoding")));
}

TEST_P(http_files_test, other_methods_are_not_allowed) {
    write("a.txt", "hello");
    serve_files("/");

    const std::string all = ask("PUT /a.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");

    EXPECT_THAT(all, StartsWith("HTTP/1.1 405"));
    EXPECT_THAT(all, HasSubstr("\r\nAllow: GET, HEAD, OPTIONS\r\n"));
}

TEST(http_router_test, files_of_a_missing_directory_throw) {
    http::router routes;

    EXPECT_THROW(routes.files("/", "/nowhere/at/all"), std::system_error);
}

INSTANTIATE_TEST_SUITE_P(backends, http_files_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
