// A reverse proxy whose clients use TLS.

#include "proxy_test.hpp"
#include "tls/tls_pair.hpp"

#include <simplenet/runtime/run.hpp>

#include <string>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

/// A backend of the library, and a proxy with TLS in front of it.
class proxy_tls_test : public testing::proxy_test {
protected:
    void SetUp() override {
        testing::proxy_test::SetUp();
        if (IsSkipped()) return;
        group_.emplace(make_group(1));
        http::router behind;
        behind.get("/", [](http::request& asked, http::response& answer) -> task<result<>> {
            const auto scheme = asked.fields().find("X-Forwarded-Proto");
            co_return co_await answer.send("text/plain", scheme.value_or("none"));
        });
        behind.websocket("/socket", [](http::websocket& peer) -> task<> {
            while (auto message = co_await peer.read_message()) {
                const auto sent = co_await peer.write_message(message->kind, message->data);
                if (!sent) break;
            }
        });
        backend_.emplace(
            or_throw(http::server::listen(*group_, endpoint::loopback(0), std::move(behind))));
        const std::string name = "127.0.0.1:" + std::to_string(backend_->local_endpoint().port());
        const http::backend to[]{{name}};
        http::router routes;
        routes.proxy("/", {.backends = to});
        const tls::context with = testing::server_with();
        serve(std::move(routes), {.tls = &with});
    }
    void TearDown() override {
        testing::proxy_test::TearDown();
        backend_.reset();
        group_.reset();
    }
    std::string url(std::string_view scheme, std::string_view path) {
        return std::string{scheme} +
               "://localhost:" + std::to_string(server().local_endpoint().port()) +
               std::string{path};
    }

private:
    std::optional<event_loop_group> group_;
    std::optional<http::server> backend_;
};

TEST_P(proxy_tls_test, the_backend_knows_that_the_client_uses_tls) {
    const auto ask = [&]() -> task<std::string> {
        const tls::context with = testing::client();
        http::client web{{.tls = &with}};
        auto answer = or_throw(co_await web.get(url("https", "/")));
        co_return or_throw(co_await answer.read_all(100));
    };
    EXPECT_EQ(simplenet::run(ask(), {.backend = GetParam()}), "https");
}

TEST_P(proxy_tls_test, messages_pass_both_ways) {
    const auto talk = [&]() -> task<> {
        const tls::context with = testing::client();
        http::client web{{.tls = &with}};
        http::websocket socket = or_throw(co_await web.websocket(url("wss", "/socket")));
        for (const std::size_t size : {std::size_t{5}, std::size_t{300'000}, std::size_t{0}}) {
            const std::string text(size, 't');
            EXPECT_TRUE(co_await socket.write_message(text));
            auto back = co_await socket.read_message();
            EXPECT_TRUE(back && back->data == text) << size;
        }
        EXPECT_TRUE(co_await socket.close());
    };
    simplenet::run(talk(), {.backend = GetParam()});
}

INSTANTIATE_TEST_SUITE_P(backends, proxy_tls_test, testing::real_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
