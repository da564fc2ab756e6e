// What response::send_file() answers.

#include "http/server/handler_test.hpp"
#include "support/error_of.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/http/response.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <gmock/gmock.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using testing::get;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::plain_answer;
using ::testing::StartsWith;

class http_file_answer_test : public testing::handler_test {
protected:
    /// Serves a file with `content` at `/`, with the coding that is given.
    void serve_file(const std::string& content, std::uint64_t pretended = 0,
                    std::string_view coding = {}) {
        const std::string path = directory_ / "file";
        std::ofstream{path} << content;
        const std::uint64_t size = pretended != 0 ? pretended : content.size();
        serve_handler([=](http::request&, http::response& answer) -> task<result<>> {
            if (!coding.empty()) {
                answer.set("Content-Encoding", coding).set("Content-Type", "text/html");
            }
            const unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
            const http::file_options with{
                .content_type = "text/plain", .entity_tag = "\"1\"", .last_modified = 784111777};
            co_return co_await answer.send_file(file.get(), size, with);
        });
    }
    std::string ask_with(std::string_view fields) {
        return ask("GET / HTTP/1.1\r\nHost: h\r\n" + std::string{fields} + "\r\n");
    }

    const std::string described = "ETag: \"1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                  "Accept-Ranges: bytes\r\n";

private:
    testing::temporary_directory directory_;
};

// It sent once more what the late write had sent, and then the file.
TEST_P(http_file_answer_test, nothing_is_sent_to_a_client_that_is_late) {
    std::atomic<bool> over = false;
    std::error_code flushed;
    std::error_code sent;
    serve_handler(
        [&](http::request&, http::response& answer) -> task<result<>> {
            const std::string large(20'000, 'x');
            if (const result<> left = co_await answer.flush(); !left) {
                const unique_fd file{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
                const result<> whole = co_await answer.send_file(file.get(), large.size());
                flushed = left.error();
                sent = error_of(whole);
                over = true;
                co_return whole;
            }
            co_return co_await answer.send("text/plain", large.substr(10'000));
        },
        {.limits = {.send_idle = 200ms}});
    testing::raw_peer client = ask_and_read_nothing();

    ASSERT_TRUE(eventually([&] { return over.load(); }));
    EXPECT_EQ(flushed, errc::deadline_exceeded);
    EXPECT_EQ(sent, std::errc::broken_pipe);
}

TEST_P(http_file_answer_test, small_and_large_files_are_sent_whole) {
    for (const std::size_t size : {0U, 1U, 612U, 16'384U, 16'385U, 3'000'000U}) {
        const std::string content(size, 'f');
        serve_file(content);
        const std::string one =
            "HTTP/1.1 200 OK\r\n" + described +
            "Content-Type: text/plain\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" +
            content;
        EXPECT_EQ(ask(std::string{get} + std::string{get}), one + one) << size;
        handler_test::TearDown();
    }
}

TEST_P(http_file_answer_test, conditions_are_answered) {
    serve_file("abc");

    EXPECT_EQ(ask_with("If-None-Match: \"1\"\r\n"),
              "HTTP/1.1 304 Not Modified\r\n" + described + "\r\n");
    EXPECT_THAT(ask_with("If-Match: \"2\"\r\n"), StartsWith("HTTP/1.1 412"));
    EXPECT_THAT(ask_with("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
                StartsWith("HTTP/1.1 304"));
}

TEST_P(http_file_answer_test, ranges_are_answered) {
    serve_file("0123456789");

    EXPECT_EQ(ask_with("Range: bytes=2-4\r\n"),
              "HTTP/1.1 206 Partial Content\r\n" + described +
                  "Content-Range: bytes 2-4/10\r\nContent-Type: text/plain\r\n"
                  "Content-Length: 3\r\n\r\n234");
    const std::string beyond = ask_with("Range: bytes=10-\r\n");
    EXPECT_THAT(beyond, StartsWith("HTTP/1.1 416"));
    EXPECT_THAT(beyond, HasSubstr("Content-Range: bytes */10\r\n"));
    EXPECT_THAT(ask_with("Range: bytes=2-4\r\nIf-Range: \"2\"\r\n"), StartsWith("HTTP/1.1 200"));
}

// A refusal used to be labelled with the coding of the file that it is not.
TEST_P(http_file_answer_test, a_refusal_does_not_have_the_coding_of_the_file) {
    serve_file("0123456789", 0, "br");

    for (const std::string_view field : {"If-Match: \"2\"\r\n", "Range: bytes=10-\r\n"}) {
        const std::string all = ask_with(field);
        EXPECT_THAT(all, StartsWith("HTTP/1.1 41"));
        EXPECT_THAT(all, Not(HasSubstr("Content-Encoding")));
        EXPECT_THAT(all, HasSubstr("\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    }
    EXPECT_THAT(ask_with(""), HasSubstr("\r\nContent-Encoding: br\r\n"));
}

TEST_P(http_file_answer_test, several_ranges_are_answered_in_parts) {
    serve_file("0123456789");

    const std::string all = ask_with("Range: bytes=0-1,4-5\r\n");

    EXPECT_THAT(all, StartsWith("HTTP/1.1 206"));
    EXPECT_THAT(all, HasSubstr("Content-Type: multipart/byteranges; boundary="));
    EXPECT_THAT(all, HasSubstr("Content-Range: bytes 4-5/10\r\n\r\n45\r\n--"));
    const std::size_t length = all.find("Content-Length: ") + 16;
    const std::size_t body = all.find("\r\n\r\n") + 4;
    EXPECT_EQ(std::stoul(all.substr(length)), all.size() - body);
}

TEST_P(http_file_answer_test, a_file_that_has_shrunk_never_looks_complete) {
    serve_file(std::string(100'000, 'x'), 200'000);
    testing::raw_peer client = connect();
    client.send(get);
    EXPECT_TRUE(is_reset(client));
    handler_test::TearDown();

    serve_file("abc", 4);
    EXPECT_THAT(ask(get), StartsWith("HTTP/1.1 500"));
}

INSTANTIATE_TEST_SUITE_P(backends, http_file_answer_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
