// Stops requests that pass through a proxy, and a tunnel, at each of their suspensions.

#include "http/client/scripted_server.hpp"
#include "http/proxy/tunnel.hpp"
#include "http/server/connection.hpp"
#include "http/server/router_access.hpp"
#include "http/server/service.hpp"
#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"
#include "support/stop_everywhere.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/stream/duplex.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

class proxy_stop_test : public stop_everywhere_test {};

/// A connection of a server whose only handler is a proxy, without the server around it.
class proxied_connection : public scenario {
protected:
    explicit proxied_connection(http::proxy_options options = {}) {
        const std::string name = backend_.authority();
        const http::backend to[]{{name}};
        options.backends = to;
        handler_.emplace(options);
        http::router routes;
        routes.any("/{path...}", *handler_);
        const http::server_options with;
        http::detail::served first;
        first.what = std::make_shared<const http::detail::serving>(
            http::detail::router_access::take(std::move(routes)), with);
        loop_.emplace(std::make_shared<http::detail::server_state>(with, std::move(first)));
    }

    task<> subject() override {
        co_await http::detail::serve_connection(std::move(ends_.ours),
                                                http::detail::connection_state{info_, *loop_});
    }
    task<> partner() override {
        task<> asking = ask();
        task<> answering = answer();
        static_cast<void>(co_await when_all(std::move(asking), std::move(answering)));
    }
    task<> verify() override {
        EXPECT_EQ(handler_->backends().at(0).active, 0U);
        co_return;
    }

    /// None: stopped before the proxy has connected.
    task<std::optional<tcp_stream>> accept() {
        try {
            co_return co_await backend_.accept();
        } catch (const std::system_error&) {
            co_return std::nullopt;
        }
    }

    virtual task<> ask() = 0;
    virtual task<> answer() = 0;

    scripted_server backend_;
    std::optional<http::proxy_handler> handler_;
    std::optional<http::detail::loop_state> loop_;
    connection_info info_;
    stream_pair ends_ = connected_pair();
};

/// A GET, a PUT that is too large for memory, and an answer in pieces.
class several_requests : public proxied_connection {
public:
    several_requests()
        : proxied_connection{{.request_buffer = 1000}} {}

private:
    task<> ask() override {
        const std::string body(3000, 'b');
        const std::string all =
            "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPUT /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3000"
            "\r\n\r\n" +
            body + "GET /3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        if (!co_await async_write_all(ends_.theirs, all)) co_return;
        std::string got;
        std::array<char, 4096> buffer;
        for (;;) {
            const auto count = co_await ends_.theirs.read_some(mutable_buffer{buffer});
            if (!count) break;
            got.append(buffer.data(), *count);
        }
        if (!stopped()) {
            EXPECT_TRUE(got.ends_with("ree\r\n0\r\n\r\n")) << got;
        }
    }
    task<> answer() override {
        std::optional<tcp_stream> accepted = co_await accept();
        if (!accepted) co_return;
        tcp_stream& stream = *accepted;
        for (const std::string_view each :
             {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none", "HTTP/1.1 204 None\r\n\r\n",
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
            if (!co_await backend_.take_request(stream)) co_return;
            if (!co_await async_write_all(stream, each)) co_return;
        }
        for (const std::string_view each : {"2\r\nth\r\n", "3\r\nree\r\n", "0\r\n\r\n"}) {
            co_await turns(2);
            if (!co_await async_write_all(stream, each)) co_return;
        }
    }
};

TEST_P(proxy_stop_test, requests_are_stopped_anywhere) {
    stop_everywhere<several_requests>();
}

/// A request that is passed on while it arrives, and so is its answer.
class a_streamed_request : public proxied_connection {
public:
    a_streamed_request()
        : proxied_connection{{.streamed = true}} {}

private:
    task<> ask() override {
        for (const std::string_view each : {"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                                            "Transfer-Encoding: chunked\r\n\r\n",
                                            "2\r\nab\r\n", "1\r\nc\r\n", "0\r\n\r\n"}) {
            if (!co_await async_write_all(ends_.theirs, each)) co_return;
            co_await turns(2);
        }
        std::array<char, 4096> buffer;
        while (co_await ends_.theirs.read_some(mutable_buffer{buffer}))
            ;
    }
    task<> answer() override {
        std::optional<tcp_stream> accepted = co_await accept();
        if (!accepted) co_return;
        tcp_stream& stream = *accepted;
        std::string text;
        std::array<char, 100> buffer;
        while (!text.ends_with("0\r\n\r\n")) {
            const auto count = co_await stream.read_some(mutable_buffer{buffer});
            if (!count) co_return;
            text.append(buffer.data(), *count);
        }
        for (const std::string_view each : {"HTTP/1.1 200 OK\r\n\r\nbe", "gin", "end"}) {
            if (!co_await async_write_all(stream, each)) co_return;
            co_await turns(2);
        }
    }
};

TEST_P(proxy_stop_test, a_streamed_request_is_stopped_anywhere) {
    stop_everywhere<a_streamed_request>();
}

class a_tunnel : public scenario {
    task<> subject() override {
        const auto ended = co_await http::detail::run_tunnel(
            any_stream{std::move(client_.first)}, any_stream{std::move(backend_.first)}, {}, {});
        expect_success_or_stop(ended);
    }
    task<> partner() override {
        task<> one = talk(client_.second);
        task<> other = talk(backend_.second);
        static_cast<void>(co_await when_all(std::move(one), std::move(other)));
    }
    static task<> talk(duplex_stream& by) {
        std::array<char, 10> buffer;
        for (int count = 0; count < 3; ++count) {
            if (!co_await async_write_all(by, std::string_view{"some words"})) co_return;
            co_await turns(1);
            if (!co_await async_read_exact(by, mutable_buffer{buffer})) co_return;
        }
        static_cast<void>(co_await by.shutdown_write());
        static_cast<void>(co_await by.read_some(mutable_buffer{buffer}));
    }

    std::pair<duplex_stream, duplex_stream> client_ = duplex(4);
    std::pair<duplex_stream, duplex_stream> backend_ = duplex(4);
};

TEST_P(proxy_stop_test, a_tunnel_is_stopped_anywhere) {
    stop_everywhere<a_tunnel>();
}

INSTANTIATE_TEST_SUITE_P(backends, proxy_stop_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
