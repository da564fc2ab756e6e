// Files that a router serves.

#include <simplenet/http/router.hpp>

#include "http/server/http_test.hpp"
#include "support/temporary_directory.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <latch>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if SIMPLENET_SEAMS
#include "sys/seam.hpp"
#endif

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

#if SIMPLENET_SEAMS
/// Holds up all listings while it lives, and counts them.
class held_listings final : public detail::sys::interceptor {
public:
    ~held_listings() override { released_.count_down(); }
    [[nodiscard]] unsigned begun() const noexcept { return begun_; }

private:
    long on_call(detail::sys::pending_call& made) noexcept override {
        if (made.which() == detail::sys::call::getdents) {
            ++begun_;
            released_.wait();
        }
        return made.make();
    }

    std::atomic<unsigned> begun_ = 0;
    std::latch released_{1};
    detail::sys::intercepting installed_{*this};
};

// Every thread that could have looked at the file made a listing.
TEST_P(http_files_test, listings_leave_threads_to_files) {
    write("a.txt", "hello");
    const unsigned count = 8 * std::thread::hardware_concurrency() + 8;
    for (unsigned each = 0; each < count; ++each)
        std::filesystem::create_directory(directory_ / ("d" + std::to_string(each)));
    http::router routes;
    for (const char* const prefix : {"/x/", "/y/"})
        routes.files(prefix, directory_ / "", {.listing = true});
    serve(std::move(routes));
    const held_listings held;

    std::vector<testing::raw_peer> clients;
    for (unsigned each = 0; each < count; ++each) {
        clients.push_back(connect());
        const std::string root = each % 2 == 0 ? "/x/d" : "/y/d";
        clients.back().send("GET " + root + std::to_string(each) + "/ HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    EXPECT_TRUE(eventually([&] { return held.begun() != 0; }));

    EXPECT_THAT(get("/x/a.txt"), EndsWith("hello"));
    EXPECT_EQ(held.begun(), 1U);
}
#endif

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

TEST_P(http_files_test, a_304_does_not_name_the_coding_of_what_is_not_sent) {
    write("a.txt", "plain");
    write("a.txt.gz", "coded");
    serve_files("/");

    const std::string all = get("/a.txt", "Accept-Encoding: gzip\r\nIf-None-Match: *\r\n");

    EXPECT_THAT(all, StartsWith("HTTP/1.1 304"));
    EXPECT_THAT(all, HasSubstr("\r\nVary: Accept-Encoding\r\n"));
    EXPECT_THAT(all, HasSubstr("\r\nETag: "));
    EXPECT_THAT(all, Not(HasSubstr("Content-")));
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

// --- file_handler --------------------------------------------------------------------------------

class file_handler_test : public http_files_test {
protected:
    /// What attempt() leaves is the answer's text.
    void serve_attempts(const http::static_options& options = {}) {
        http::router routes;
        const http::file_handler files{directory_ / "", options};
        routes.fallback([files](http::request& asked, http::response& answer) -> task<result<>> {
            const result<unsigned> left = co_await files.attempt(asked, answer);
            if (!left) co_return fail(left);
            if (*left == 0) co_return result<>{};
            co_return co_await answer.send("text/plain", "left " + std::to_string(*left));
        });
        serve(std::move(routes));
    }
};

TEST_P(file_handler_test, what_it_does_not_answer_is_left_to_its_caller) {
    write("a.txt", "hello");
    std::filesystem::create_directory(directory_ / "sub");
    serve_attempts();

    EXPECT_THAT(get("/a.txt"), EndsWith("\r\n\r\nhello"));
    EXPECT_THAT(get("/a%2Etxt"), EndsWith("\r\n\r\nhello"));
    EXPECT_THAT(get("/sub"), StartsWith("HTTP/1.1 301 "));
    for (const std::string_view path : {"/b", "/a.txt/", "/sub/", "/a%2Fb", "/a.txt/b"}) {
        EXPECT_THAT(get(path), EndsWith("\r\n\r\nleft 404")) << path;
    }
    const std::string posted = ask("POST /a.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    EXPECT_THAT(posted, EndsWith("\r\n\r\nleft 405"));
    EXPECT_THAT(posted, HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST_P(file_handler_test, it_answers_with_the_path_that_was_rewritten) {
    write("a.txt", "hello");
    http::router routes;
    const http::file_handler files{directory_ / ""};
    routes.fallback([files](http::request& asked, http::response& answer) -> task<result<>> {
        asked.rewrite("/a.txt");
        answer.status(404);
        co_return co_await files(asked, answer);
    });
    serve(std::move(routes));

    const std::string all = get("/none", "If-Modified-Since: Fri, 31 Dec 9999 23:59:59 GMT\r\n");

    EXPECT_THAT(all, StartsWith("HTTP/1.1 404 "));
    EXPECT_THAT(all, EndsWith("\r\n\r\nhello"));
}

TEST_P(file_handler_test, validators_of_the_file_replace_those_that_were_set) {
    write("a.txt", "hello");
    http::router routes;
    const http::file_handler files{directory_ / ""};
    routes.get("/own", [files](http::request& asked, http::response& answer) -> task<result<>> {
        asked.rewrite("/a.txt");
        answer.set("etag", "\"own\"").set("last-modified", "long ago");
        answer.set("Accept-Ranges", "none");
        co_return co_await files(asked, answer);
    });
    routes.get("/{rest...}", files);
    serve(std::move(routes));

    const auto lines_of = [](const std::string& answer) {
        std::vector<std::string> lines;
        std::istringstream from{answer.substr(0, answer.find("\r\n\r\n"))};
        for (std::string line; std::getline(from, line);)
            if (!line.starts_with("Date: ")) lines.push_back(line.substr(0, line.find('\r')));
        return lines;
    };
    EXPECT_THAT(lines_of(get("/own")),
                ::testing::UnorderedElementsAreArray(lines_of(get("/a.txt"))));
}

TEST_P(file_handler_test, it_tells_what_a_path_leads_to) {
    write("a.txt", "hello");
    write(".hidden", "secret");
    std::filesystem::create_directory(directory_ / "sub");
    http::router routes;
    const http::file_handler files{directory_ / ""};
    routes.fallback([files](http::request& asked, http::response& answer) -> task<result<>> {
        const http::file_kind kind = co_await files.look(asked, asked.path());
        constexpr std::string_view names[]{"missing", "file", "directory"};
        co_return co_await answer.send("text/plain", names[static_cast<int>(kind)]);
    });
    serve(std::move(routes));
    const struct {
        std::string_view path, kind;
    } cases[] = {
        {"/a.txt", "file"},      {"/a%2etxt", "file"},    {"/a.txt/", "missing"},
        {"/", "directory"},      {"/sub", "directory"},   {"/sub/", "directory"},
        {"/.hidden", "missing"}, {"/sub%2Fx", "missing"}, {"/none", "missing"},
    };
    for (const auto& each : cases) {
        EXPECT_THAT(get(each.path), EndsWith("\r\n\r\n" + std::string{each.kind})) << each.path;
    }
}

INSTANTIATE_TEST_SUITE_P(backends, file_handler_test, testing::all_backends, testing::backend_name);
INSTANTIATE_TEST_SUITE_P(backends, http_files_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
