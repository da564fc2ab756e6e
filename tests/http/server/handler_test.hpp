#pragma once
// handler_test: a server with one handler, and what tests of its answers have in common.

#include "http/server/http_test.hpp"

#include <simplenet/time/sleep.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace simplenet::v0::testing {

inline constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
inline constexpr std::string_view get_closing =
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
inline constexpr std::string_view head_of = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Another thread sets `flag`.
inline task<> until_set(const std::atomic<bool>& flag) {
    while (!flag) {
        const auto slept = co_await async_sleep(std::chrono::milliseconds{1});
        if (!slept) break; // the server ends
    }
}

class handler_test : public http_test {
protected:
    /// Serves `handler` at `/`.
    void serve_handler(auto handler, const http::server_options& options = {}) {
        http::router routes;
        routes.get("/", std::move(handler));
        serve(std::move(routes), options);
    }
    std::atomic<bool> released = false; // handlers that wait may go on

    /// A client that has sent a thousand requests at once. With answers of 10 kB they are more than
    /// the kernels take.
    raw_peer ask_and_read_nothing() {
        raw_peer client = connect();
        set_buffers(client.fd(), 4096);
        std::string many;
        for (int each = 0; each < 1000; ++each)
            many += get;
        client.send(many);
        return client;
    }
    /// Whether the connection ends with a reset, whatever came before.
    static bool is_reset(raw_peer& client) {
        return client.receive_to_the_end() == std::errc::connection_reset;
    }
};

} // namespace simplenet::v0::testing
