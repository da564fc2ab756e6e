// Stops a call of a client, and the reading of an answer, at each of their suspensions.

#include "compressed.hpp"
#include "scripted_server.hpp"
#include "support/coroutines.hpp"
#include "support/stop_everywhere.hpp"

#include <simplenet/coro/scoped.hpp>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

class client_stop_test : public stop_everywhere_test {};

/// A redirect and an answer in pieces, to a request with a streamed body.
class whole_exchange : public scenario {
    struct slow_source {
        int left = 3;
        task<result<std::size_t>> read_some(mutable_buffer into) {
            if (left == 0) co_return fail(errc::end_of_stream);
            co_await turns(1);
            --left;
            into.data()[0] = std::byte{'x'};
            co_return std::size_t{1};
        }
    };

    task<> subject() override {
        slow_source source;
        const std::string url = server_.url();
        auto answer = co_await web_.send({.method = "POST", .url = url, .stream = source});
        expect_success_or_stop(answer);
        if (!answer) co_return;
        auto body = co_await answer->read_all(1000);
        expect_success_or_stop(body);
        if (body) {
            EXPECT_EQ(*body, "there");
        }
    }
    task<> partner() override {
        std::vector<answers> script{{redirect_to("/there", 303)}, {answer_with("there")}};
        co_await server_.serve(std::move(script));
    }
    task<> verify() override {
        EXPECT_EQ(web_.connections(), web_.idle_connections());
        co_return;
    }

    scripted_server server_;
    http::client web_{{.redirects = 2}};
};

TEST_P(client_stop_test, a_call_is_stopped_anywhere) {
    stop_everywhere<whole_exchange>();
}

/// An answer that arrives in small pieces, chunked and compressed.
class reading_an_answer : public scenario {
    task<> subject() override { co_await read(true); }
    task<> partner() override { co_await shield(serve()); }
    task<> verify() override {
        co_await read(false);
        EXPECT_EQ(got_, text());
    }

    static std::string text() { return "a text that is compressed, and read in pieces"; }
    task<> serve() {
        tcp_stream stream = co_await server_.accept();
        co_await server_.take_request(stream);
        const std::string packed = gzipped(text());
        std::string all = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                          "Content-Encoding: gzip\r\n\r\n";
        for (std::size_t at = 0; at < packed.size(); at += 10) {
            const std::string part = packed.substr(at, 10);
            all += (part.size() == 10 ? "a" : std::to_string(part.size())) + "\r\n" + part + "\r\n";
        }
        all += "0\r\n\r\n";
        for (std::size_t at = 0; at < all.size(); at += 40) {
            const std::string part = all.substr(at, 40);
            const auto sent = co_await async_write_all(stream, part);
            if (!sent) co_return;
            co_await turns(2);
        }
    }
    task<> read(bool stoppable) {
        if (!answer_) {
            auto opened = co_await shield(web_.get(server_.url()));
            if (!expect_success(opened)) co_return;
            answer_.emplace(*std::move(opened));
        }
        std::array<char, 7> buffer;
        for (;;) {
            const auto count = co_await answer_->read_some(mutable_buffer{buffer});
            if (!count && count.error() == errc::end_of_stream) co_return;
            if (!count && stoppable) expect_success_or_stop(count);
            if (!count && !stoppable) expect_success(count);
            if (!count) co_return;
            got_.append(buffer.data(), *count);
        }
    }

    scripted_server server_;
    http::client web_;
    std::optional<http::client_response> answer_;
    std::string got_;
};

TEST_P(client_stop_test, reading_is_stopped_anywhere_and_loses_nothing) {
    stop_everywhere<reading_an_answer>();
}

/// A server that sends back what it reads, while it reads.
class echoing : public scenario {
    static constexpr std::size_t size = 300'000;

    task<> subject() override { co_await read(true); }
    task<> partner() override {
        co_await shield(begin_answer());
        co_await echo();
    }
    task<> verify() override {
        auto rest = spawn(echo());
        co_await read(false);
        co_await rest;
        EXPECT_EQ(got_, size);
        EXPECT_EQ(web_.idle_connections(), 1U);
    }
    task<> begin_answer() {
        stream_.emplace(co_await server_.accept());
        std::string head;
        std::array<char, 1> one;
        while (!head.ends_with("\r\n\r\n")) {
            if (!co_await stream_->read_some(mutable_buffer{one})) co_return;
            head += one[0];
        }
        const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n";
        static_cast<void>(co_await async_write_all(*stream_, answer));
    }
    /// Until everything has gone back, or a stop, which loses nothing.
    task<> echo() {
        while (echoed_ < size) {
            if (held_.empty()) {
                const auto count = co_await stream_->read_some(buffer_);
                if (!count) co_return;
                held_ = {buffer_.data(), *count};
            }
            const auto count = co_await stream_->write_some(held_);
            if (!count) co_return;
            held_ = held_.subspan(*count);
            echoed_ += *count;
        }
    }
    task<> read(bool stoppable) {
        if (!answer_) {
            const std::string url = server_.url();
            auto opened = co_await shield(web_.send({.method = "PUT", .url = url, .body = body_}));
            if (!expect_success(opened)) co_return;
            answer_.emplace(*std::move(opened));
        }
        std::vector<std::byte> buffer(50'000);
        for (;;) {
            const auto count = co_await answer_->read_some(buffer);
            if (!count && count.error() == errc::end_of_stream) co_return;
            if (!count && stoppable) expect_success_or_stop(count);
            if (!count && !stoppable) expect_success(count);
            if (!count) co_return;
            got_ += *count;
        }
    }

    scripted_server server_;
    http::client web_;
    const std::string body_ = std::string(size, 'x');
    std::optional<http::client_response> answer_;
    std::size_t got_ = 0;
    std::optional<tcp_stream> stream_; // of the server
    std::vector<std::byte> buffer_ = std::vector<std::byte>(30'000);
    const_buffer held_; // in the buffer
    std::size_t echoed_ = 0;
};

TEST_P(client_stop_test, sending_while_reading_is_stopped_anywhere_and_loses_nothing) {
    stop_everywhere<echoing>();
}

INSTANTIATE_TEST_SUITE_P(backends, client_stop_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
