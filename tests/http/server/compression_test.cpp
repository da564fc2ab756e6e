#include "http/server/gzip_encoder.hpp"

#include "http/codec/chunked.hpp"

#include "http/server/http_test.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/time/deadline.hpp>

#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <zlib.h>

namespace simplenet::v0 {
namespace {

using namespace http::detail;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// What a gzip stream contains; empty if it is not exactly one.
std::string inflated(std::string_view from) {
    z_stream stream{};
    inflateInit2(&stream, 15 + 16);
    std::string input{from};
    std::string all(std::size_t{64} << 20U, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(all.data());
    stream.avail_out = static_cast<uInt>(all.size());
    const int outcome = inflate(&stream, Z_FINISH);
    all.resize(stream.total_out);
    const bool whole = outcome == Z_STREAM_END && stream.avail_in == 0;
    inflateEnd(&stream);
    return whole ? all : std::string{};
}

TEST(gzip_encoder_test, small_outputs_give_the_same_stream) {
    const std::string text(100'000, 'a');
    gzip_encoder encoder{6};
    std::string all;
    const_buffer rest{text};
    for (bool done = false; !done;) {
        std::array<char, 7> piece;
        const auto step = encoder.encode(rest, piece, gzip_encoder::until::finish);
        all.append(piece.data(), step.produced);
        rest = rest.subspan(step.consumed);
        done = step.done;
    }

    EXPECT_EQ(inflated(all), text);
}

TEST(gzip_encoder_test, types_match_without_parameters_and_case) {
    EXPECT_TRUE(matches_type("text/html; charset=utf-8", "text/HTML"));
    EXPECT_TRUE(matches_type("text/css", "text/*"));
    EXPECT_FALSE(matches_type("text/", "text/*"));
    EXPECT_FALSE(matches_type("textual/html", "text/*"));
    EXPECT_FALSE(matches_type("text/html5", "text/html"));
}

class http_compression_test : public testing::http_test {
protected:
    void serve_text(http::router routes) {
        const std::string_view types[]{"text/*"};
        serve(std::move(routes), {.compression = {.types = types}});
    }
    std::string get(std::string_view fields) {
        return ask("GET / HTTP/1.1\r\nHost: h\r\n" + std::string{fields} + "\r\n");
    }
    /// The decoded body of a chunked answer with gzip.
    static std::string decoded(std::string_view answer) {
        answer.remove_prefix(answer.find("\r\n\r\n") + 4);
        std::string body;
        chunked_decoder chunks;
        for (;;) {
            const auto step = chunks.next(answer);
            body.append(step.data);
            answer.remove_prefix(step.consumed);
            if (step.kind != chunked_decoder::step::kind::data) break;
        }
        return inflated(body);
    }
    static constexpr std::string_view accepting = "Accept-Encoding: gzip\r\n";
};

TEST_P(http_compression_test, large_texts_are_compressed_for_clients_that_accept_it) {
    http::router routes;
    std::string text;
    for (int each = 0; each < 100'000; ++each)
        text += std::to_string(each);
    routes.get("/", [text](http::request&, http::response& answer) -> task<result<>> {
        answer.set("ETag", "\"1\"");
        co_return co_await answer.send("text/plain", text);
    });
    serve_text(std::move(routes));

    const std::string all = get(accepting);
    EXPECT_THAT(all, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
    EXPECT_THAT(all, HasSubstr("\r\nVary: Accept-Encoding\r\n"));
    EXPECT_THAT(all, HasSubstr("\r\nETag: W/\"1\"\r\n"));
    EXPECT_EQ(decoded(all), text);
    const std::string plain = get("");
    EXPECT_THAT(plain, Not(HasSubstr("Content-Encoding")));
    EXPECT_THAT(plain, HasSubstr("\r\nVary: Accept-Encoding\r\n"));
    EXPECT_THAT(plain, EndsWith(text));
}

// Used to be sent with the compressed body, for which they do not hold: digests did not match.
TEST_P(http_compression_test, what_describes_the_plain_body_is_not_sent_with_a_compressed_one) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        answer.set("accept-ranges", "bytes")
            .set("Content-MD5", "m")
            .set("Digest", "sha-256=d")
            .set("Content-Digest", "sha-256=:c:")
            .set("Repr-Digest", "sha-256=:r:")
            .set("X-Digest", "x");
        co_return co_await answer.send("text/plain", std::string(5000, 'a'));
    });
    serve_text(std::move(routes));
    const auto plain_only =
        AnyOf(HasSubstr("accept-ranges"), HasSubstr("MD5"), HasSubstr("\nDigest"),
              HasSubstr("t-Digest"), HasSubstr("r-Digest"));

    EXPECT_THAT(get(accepting), AllOf(Not(plain_only), HasSubstr("\r\nX-Digest: x\r\n")));
    EXPECT_THAT(get(""),
                AllOf(HasSubstr("\r\naccept-ranges: bytes\r\n"),
                      HasSubstr("\r\nContent-MD5: m\r\n"), HasSubstr("\r\nDigest: sha-256=d\r\n"),
                      HasSubstr("\r\nContent-Digest: sha-256=:c:\r\n"),
                      HasSubstr("\r\nRepr-Digest: sha-256=:r:\r\n")));
}

// A handler that only announces a length, as the proxy does for HEAD, used to show the length and
// the strong tag of the plain body.
TEST_P(http_compression_test, an_answer_to_head_has_the_fields_of_the_compressed_answer) {
    http::router routes;
    const std::string text(5000, 'a');
    routes.get("/sent", [text](http::request&, http::response& answer) -> task<result<>> {
        answer.set("ETag", "\"1\"").set("Content-MD5", "m");
        co_return co_await answer.send("text/plain", text);
    });
    routes.get("/announced", [text](http::request& asked, http::response& answer) -> task<> {
        answer.set("Content-Type", "text/plain").set("ETag", "\"1\"").set("Content-MD5", "m");
        answer.set("Content-Length", std::to_string(text.size()));
        if (asked.method() == "HEAD") co_return;
        EXPECT_EQ(co_await answer.write_some(text), text.size());
    });
    serve_text(std::move(routes));
    for (const std::string path : {"/sent", "/announced"}) {
        const std::string rest =
            path + " HTTP/1.1\r\nHost: h\r\n" + std::string{accepting} + "\r\n";
        const std::string head = ask("HEAD " + rest);

        EXPECT_THAT(ask("GET " + rest), StartsWith(head)) << path;
        EXPECT_THAT(head, HasSubstr("\r\nETag: W/\"1\"\r\n"));
        EXPECT_THAT(head, AllOf(EndsWith("\r\n\r\n"), Not(HasSubstr("MD5"))));
    }
}

TEST_P(http_compression_test, other_types_and_small_answers_are_not_compressed) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", std::string(1023, 'a'));
    });
    routes.get("/png", [](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("image/png", std::string(5000, 'a'));
    });
    serve_text(std::move(routes));

    EXPECT_THAT(get(accepting), Not(HasSubstr("Content-Encoding")));
    EXPECT_THAT(ask("GET /png HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n"),
                Not(HasSubstr("Vary")));
}

TEST_P(http_compression_test, each_write_of_a_stream_can_be_decoded_at_once) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<> {
        answer.set("Content-Type", "text/event-stream");
        for (int each = 0; each < 3; ++each)
            EXPECT_EQ(co_await answer.write_some("event\n"), 6U);
    });
    serve_text(std::move(routes));

    EXPECT_EQ(decoded(get(accepting)), "event\nevent\nevent\n");
}

TEST_P(http_compression_test, files_are_compressed_and_have_no_ranges) {
    const testing::temporary_directory directory;
    const std::string text(500'000, 'f');
    std::ofstream{directory / "a.txt"} << text;
    http::router routes;
    routes.files("/", directory / "");
    serve_text(std::move(routes));

    const std::string all = ask("GET /a.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n"
                                "Range: bytes=0-1\r\n\r\n");

    EXPECT_THAT(all, Not(HasSubstr("Accept-Ranges")));
    EXPECT_TRUE(decoded(all) == text) << all.substr(0, 500);
}

TEST_P(http_compression_test, vary_names_the_coding_once) {
    const testing::temporary_directory directory;
    std::ofstream{directory / "a.txt"} << std::string(5000, 'f');
    std::ofstream{directory / "a.txt.gz"} << "not newer, not older";
    http::router routes;
    routes.files("/", directory / "");
    routes.get("/own", [](http::request&, http::response& answer) -> task<result<>> {
        answer.add("Vary", "Cookie, accept-encoding");
        co_return co_await answer.send("text/plain", std::string(5000, 'a'));
    });
    serve_text(std::move(routes));

    const std::string file = ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    const std::string own = ask("GET /own HTTP/1.1\r\nHost: h\r\n\r\n");

    EXPECT_EQ(file.find("Vary: Accept-Encoding"), file.rfind("Vary: "));
    EXPECT_THAT(file, HasSubstr("\r\nVary: Accept-Encoding\r\n"));
    EXPECT_THAT(own, HasSubstr("\r\nVary: Cookie, accept-encoding\r\n"));
    EXPECT_THAT(own, Not(HasSubstr("Accept-Encoding")));
}

TEST_P(http_compression_test, no_transform_counts_in_each_of_several_fields) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        answer.add("Cache-Control", "max-age=1").add("Cache-Control", "private, No-Transform");
        co_return co_await answer.send("text/plain", std::string(5000, 'a'));
    });
    serve_text(std::move(routes));

    EXPECT_THAT(get(accepting), Not(HasSubstr("Content-Encoding")));
}

TEST_P(http_compression_test, vary_of_the_program_is_added_to) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<result<>> {
        answer.add("Vary", "Cookie");
        co_return co_await answer.send("text/plain", std::string(5000, 'a'));
    });
    serve_text(std::move(routes));

    const std::string all = get(accepting);

    EXPECT_THAT(all, HasSubstr("\r\nVary: Cookie\r\n"));
    EXPECT_THAT(all, HasSubstr("\r\nVary: Accept-Encoding\r\n"));
}

/// Text of which gzip leaves some quarter: less than the output gathers of one step of a file. So
/// a stop meets a step that has not begun.
std::string random_text(std::size_t size) {
    std::string text(size, '\0');
    std::uint32_t state = 1;
    for (char& each : text) {
        state = state * 1'664'525 + 1'013'904'223;
        each = static_cast<char>('0' + (state >> 30U));
    }
    return text;
}

class http_compressed_answer_test : public http_compression_test {
protected:
    /// Sends the file with `content` at `/`, as if it had `size` bytes, and does not tell of
    /// errors.
    void serve_file_as(const std::string& content, std::uint64_t size) {
        const std::string path = directory_ / "file";
        std::ofstream{path} << content;
        http::router routes;
        routes.get("/", [this, path, size](http::request&, http::response& answer) -> task<> {
            const unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
            event_loop::current()->post([this] { others_ran_ = true; });
            const auto sent = co_await answer.send_file(file.get(), size, as_text);
            outcome_ = error_of(sent);
            others_had_a_turn_ = others_ran_.load();
        });
        serve_text(std::move(routes));
    }
    [[nodiscard]] testing::raw_peer ask_for_gzip() {
        testing::raw_peer client = connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n");
        return client;
    }
    /// What a handler sends within so short a time that the client's kernel has no room for it.
    template <class Send>
    void serve_stopped(Send send) {
        http::router routes;
        routes.get("/", [this, send](http::request&, http::response& answer) -> task<> {
            task<result<>> sending = send(answer);
            const auto sent = co_await with_timeout(std::move(sending), 50ms);
            outcome_ = error_of(sent);
            has_ended_ = true;
        });
        serve_text(std::move(routes));
    }

    static constexpr http::file_options as_text{.content_type = "text/plain"};
    const testing::temporary_directory directory_;
    std::error_code outcome_;
    std::atomic<bool> others_ran_ = false;
    std::atomic<bool> others_had_a_turn_ = false;
    std::atomic<bool> has_ended_ = false;
};

// A step may be consumed without any output, and so without waiting.
TEST_P(http_compressed_answer_test, a_file_that_compresses_well_leaves_others_their_turn) {
    const std::string text(3'000'000, 'f');
    serve_file_as(text, text.size());

    EXPECT_TRUE(decoded(get(accepting)) == text);
    EXPECT_TRUE(others_had_a_turn_);
}

// Each compressed 32 KiB in each turn of the loop, and others waited for all of them: 5 s for 800.
TEST_P(http_compression_test, clients_that_compress_take_turns) {
    constexpr int clients = 16;
    constexpr int steps = 32;
    const std::string text(std::size_t{steps} * 32 * 1024, 'x');
    std::atomic<int> ready = 0;
    std::atomic<int> done = 0;
    std::atomic<int> turns = 0;
    http::router routes;
    routes
        .get("/",
             [&](http::request&, http::response& answer) -> task<result<>> {
                 ++ready;
                 while (ready < clients)
                     co_await yield();
                 const result<> sent = co_await answer.send("text/plain", text);
                 ++done;
                 co_return sent;
             })
        .get("/count", [&](http::request&, http::response&) -> task<> {
            while (done < clients) {
                turns += ready == clients ? 1 : 0;
                co_await yield();
            }
        });
    serve_text(std::move(routes));
    testing::raw_peer counting = connect();
    counting.send("GET /count HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    std::vector<testing::raw_peer> all;
    for (int each = 0; each < clients; ++each) {
        all.push_back(connect());
        all.back().send("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n"
                        "Connection: close\r\n\r\n");
    }
    for (testing::raw_peer& each : all)
        EXPECT_THAT(rest_of(each), StartsWith("HTTP/1.1 200"));

    EXPECT_THAT(rest_of(counting), StartsWith("HTTP/1.1 200"));
    EXPECT_GT(turns, clients * steps / 2);
}

TEST_P(http_compression_test, a_loop_ends_while_clients_take_turns) {
    const std::string text(50'000'000, 'x');
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", text);
    });
    serve_text(std::move(routes));
    std::vector<testing::raw_peer> all;
    for (int each = 0; each < 8; ++each) {
        all.push_back(connect());
        all.back().send("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n");
    }
    EXPECT_TRUE(eventually([&] { return server().statistics().requests == 8; }));

    end_loops();

    for (testing::raw_peer& each : all)
        EXPECT_EQ(each.receive_to_the_end(), std::errc::connection_reset);
}

TEST_P(http_compressed_answer_test, a_file_that_has_shrunk_never_looks_complete) {
    serve_file_as(std::string(100'000, 'f'), 200'000);
    testing::raw_peer client = ask_for_gzip();

    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
    EXPECT_EQ(outcome_, std::errc::io_error);
}

TEST_P(http_compressed_answer_test, a_body_that_was_stopped_never_looks_complete) {
    const std::string text = random_text(20'000'000);
    serve_stopped([&](http::response& answer) -> task<result<>> {
        co_return co_await answer.send("text/plain", text);
    });
    testing::raw_peer client = ask_for_gzip();
    ASSERT_TRUE(eventually([&] { return has_ended_.load(); }));

    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
    EXPECT_EQ(outcome_, errc::deadline_exceeded);
}

TEST_P(http_compressed_answer_test, a_file_that_was_stopped_never_looks_complete) {
    const std::string path = directory_ / "large";
    std::ofstream{path} << random_text(20'000'000);
    const unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    serve_stopped([&](http::response& answer) -> task<result<>> {
        co_return co_await answer.send_file(file.get(), 20'000'000, as_text);
    });
    testing::raw_peer client = ask_for_gzip();
    ASSERT_TRUE(eventually([&] { return has_ended_.load(); }));

    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
    EXPECT_EQ(outcome_, errc::deadline_exceeded);
}

// The first try used to leave its label, with which the second was sent plain.
TEST_P(http_compressed_answer_test, an_answer_that_is_sent_again_after_a_stop_is_labelled_once) {
    const std::string text = random_text(10'000);
    http::router routes;
    routes.get("/fill", [](http::request&, http::response& answer) -> task<> {
        static_cast<void>(co_await testing::write_until_full(answer));
    });
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        answer.set("Large", std::string(32'768, 'l')).set("ETag", "\"1\"");
        const auto send = [&]() -> task<result<>> {
            co_return co_await answer.send("text/plain", text);
        };
        task<result<>> sending = send();
        const auto sent = co_await with_timeout(std::move(sending), 50ms);
        has_ended_ = error_of(sent) == errc::deadline_exceeded;
        co_return co_await answer.send("text/plain", text);
    });
    serve_text(std::move(routes));
    testing::raw_peer client = connect();
    testing::set_buffers(client.fd(), 65'536);
    client.send("GET /fill HTTP/1.1\r\nHost: h\r\n\r\n"
                "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAccept-Encoding: gzip\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return has_ended_.load(); }));

    const std::string all = rest_of(client);
    const std::string answer = all.substr(all.find("0\r\n\r\nHTTP") + 5);

    const std::size_t label = answer.find("Content-Encoding: gzip\r\n");
    EXPECT_NE(label, std::string::npos);
    EXPECT_EQ(answer.find("Content-Encoding", label + 1), std::string::npos);
    EXPECT_EQ(answer.find("Vary"), answer.rfind("Vary"));
    EXPECT_EQ(decoded(answer), text);
}

// The length of a compressed body is not told to the client, so only this finds a part missing.
TEST_P(http_compressed_answer_test, a_compressed_stream_has_as_much_as_was_announced) {
    http::router routes;
    routes.get("/", [](http::request&, http::response& answer) -> task<> {
        answer.set("Content-Type", "text/plain").set("Content-Length", "5000");
        const std::string part(4999, 'a');
        EXPECT_EQ(co_await answer.write_some(part), part.size());
        EXPECT_EQ((co_await answer.write_some("bc")).error(), std::errc::message_size);
    });
    serve_text(std::move(routes));
    testing::raw_peer client = ask_for_gzip();

    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
}

INSTANTIATE_TEST_SUITE_P(backends, http_compressed_answer_test, testing::all_backends,
                         testing::backend_name);
INSTANTIATE_TEST_SUITE_P(backends, http_compression_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
