// The client against our own server, on a loop of its own.

#include "http/server/http_test.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/runtime/run.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

/// Sends the body back while it arrives.
task<result<>> echo_streamed(http::request& asked, http::response& answer) {
    std::array<std::byte, 16384> buffer;
    for (;;) {
        const auto count = co_await asked.read_some(buffer);
        if (!count && count.error() == errc::end_of_stream) co_return result<>{};
        if (!count) co_return fail(count);
        for (std::size_t done = 0; done < *count;) {
            const const_buffer rest{buffer.data() + done, *count - done};
            const auto written = co_await answer.write_some(rest);
            if (!written) co_return fail(written);
            done += *written;
        }
    }
}

/// `size` bytes that tell where they stand.
class numbered_source {
public:
    explicit numbered_source(std::size_t size)
        : size_{size} {}
    task<result<std::size_t>> read_some(mutable_buffer into) {
        if (at_ == size_) co_return fail(errc::end_of_stream);
        const std::size_t count = std::min(into.size(), size_ - at_);
        for (std::size_t each = 0; each < count; ++each)
            into.data()[each] = byte_at(at_ + each);
        at_ += count;
        co_return count;
    }
    static std::byte byte_at(std::size_t at) {
        return static_cast<std::byte>(at ^ (at >> 8U) ^ (at >> 16U));
    }

private:
    std::size_t size_;
    std::size_t at_ = 0;
};

/// Reads numbered bytes to the end; the number of those that are right before the first wrong one.
task<std::size_t> count_numbered(http::client_response& from) {
    std::vector<std::byte> buffer(100'000);
    std::size_t at = 0;
    for (;;) {
        const auto count = co_await from.read_some(buffer);
        if (!count) {
            EXPECT_EQ(count.error(), errc::end_of_stream);
            co_return at;
        }
        for (std::size_t each = 0; each < *count; ++each, ++at) {
            if (buffer[each] != numbered_source::byte_at(at)) co_return at;
        }
    }
}

/// The subprotocol of the server.
constexpr std::array<std::string_view, 1> spoken{"spoken"};

class client_service_test : public testing::http_test {
protected:
    [[nodiscard]] std::string url(std::string_view path = "/", std::string_view scheme = "http") {
        return std::string{scheme} +
               "://127.0.0.1:" + std::to_string(server().local_endpoint().port()) +
               std::string{path};
    }
    /// Runs `body(client)` on a loop of this thread.
    template <class Body>
    void use(Body body, const http::client_options& options = {}) {
        auto used = [&]() -> task<> {
            http::client web{options};
            co_await body(web);
        };
        simplenet::run(used(), {.backend = GetParam()});
    }
};

TEST_P(client_service_test, requests_share_a_connection) {
    http::router routes;
    routes.get("/", testing::tell_request);
    serve(std::move(routes));
    use([&](http::client& web) -> task<> {
        for (int each = 0; each < 10; ++each) {
            auto answer = or_throw(co_await web.get(url("/?q")));
            const auto text = co_await answer.read_all(1000);
            EXPECT_TRUE(text && text->starts_with("GET\n/\nq\n"));
        }
    });
    EXPECT_EQ(server().statistics().accepted, 1U);
    EXPECT_EQ(server().statistics().requests, 10U);
}

TEST_P(client_service_test, a_thousand_requests_at_once_share_eight_connections) {
    http::router routes;
    routes.post("/", testing::echo_body);
    serve(std::move(routes));
    int good = 0;
    use([&](http::client& web) -> task<> {
        auto ask = [&](int number) -> task<> {
            const std::string to = url();
            const std::string body = std::to_string(number);
            auto answer = co_await web.send({.method = "POST", .url = to, .body = body});
            if (!answer) co_return;
            const auto text = co_await answer->read_all(1000);
            if (text && *text == body) ++good;
        };
        std::vector<task<>> all;
        for (int each = 0; each < 1000; ++each)
            all.push_back(ask(each));
        co_await when_all(std::move(all));
    });
    EXPECT_EQ(good, 1000);
    EXPECT_LE(server().statistics().accepted, 8U);
}

TEST_P(client_service_test, a_large_body_goes_both_ways_at_once) {
    constexpr std::size_t size = std::size_t{50} << 20U;
    http::router routes;
    routes.post("/", echo_streamed, {.body = 0});
    serve(std::move(routes));
    use([&](http::client& web) -> task<> {
        numbered_source source{size};
        const std::string to = url();
        auto answer = or_throw(co_await web.send({.method = "POST", .url = to, .stream = source}));
        EXPECT_EQ(co_await count_numbered(answer), size);
        EXPECT_EQ(web.idle_connections(), 1U);
    });
}

TEST_P(client_service_test, a_body_that_is_too_large_is_refused_with_an_answer) {
    http::router routes;
    routes.post("/", testing::echo_body);
    serve(std::move(routes), {.limits = {.body = 1000}});
    use([&](http::client& web) -> task<> {
        const std::string body(30'000'000, 'x');
        const std::string to = url();
        auto answer = or_throw(co_await web.send({.method = "POST", .url = to, .body = body}));
        EXPECT_EQ(answer.status(), 413U);
        EXPECT_TRUE(co_await answer.read_all(1000));
        EXPECT_EQ(web.connections(), 0U);
    });
}

TEST_P(client_service_test, an_expected_body_is_asked_for) {
    http::router routes;
    routes.post("/", testing::echo_body);
    serve(std::move(routes));
    use(
        [&](http::client& web) -> task<> {
            const std::string to = url();
            auto answer = or_throw(co_await web.send(
                {.method = "POST", .url = to, .body = "wanted", .expect_continue = true}));
            EXPECT_EQ(or_throw(co_await answer.read_all(1000)), "wanted");
        },
        {.continue_within = std::chrono::hours{1}});
}

TEST_P(client_service_test, a_websocket_is_opened_and_speaks) {
    http::router routes;
    routes.websocket("/talk",
                     [](http::websocket& peer) -> task<> {
                         while (auto message = co_await peer.read_message()) {
                             const auto written =
                                 co_await peer.write_message(message->kind, message->data);
                             if (!written) break;
                         }
                     },
                     {.protocols = spoken});
    serve(std::move(routes));
    use([&](http::client& web) -> task<> {
        const std::array<std::string_view, 2> offered{"other", "spoken"};
        auto opened = co_await web.websocket(url("/talk", "ws"), {.protocols = offered});
        http::websocket peer = or_throw(std::move(opened));
        EXPECT_EQ(peer.protocol(), "spoken");
        EXPECT_TRUE(co_await peer.write_message("hello"));
        EXPECT_EQ(or_throw(co_await peer.read_message()).data, "hello");
        EXPECT_TRUE(co_await peer.close());
        EXPECT_EQ(web.connections(), 0U);
    });
}

TEST_P(client_service_test, a_websocket_that_is_refused_is_an_error) {
    http::router routes;
    routes.get("/", testing::tell_request);
    serve(std::move(routes));
    use([&](http::client& web) -> task<> {
        for (const char* const path : {"/", "/missing"}) {
            EXPECT_EQ(error_of(co_await web.websocket(url(path, "ws"))),
                      http::errc::websocket_protocol);
        }
        EXPECT_EQ(error_of(co_await web.websocket(url("/"))), http::errc::bad_url);
        const std::array<std::string_view, 1> bad{"a b"};
        EXPECT_EQ(error_of(co_await web.websocket(url("/", "ws"), {.protocols = bad})),
                  std::errc::invalid_argument);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, client_service_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
