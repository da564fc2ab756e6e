#pragma once
// served_test: the fixture of the tests of servers, whose loops run on threads of their own.

#include "support/backend_test.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/server/tcp_server.hpp>
#include <simplenet/stream/transfer.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {

class served_test : public own_loops_test {
protected:
    [[nodiscard]] static event_loop_group make_group(unsigned loops, loop_options with = {}) {
        with.backend = GetParam();
        return or_throw(event_loop_group::create({.loops = loops, .loop = with}));
    }

    [[nodiscard]] static raw_peer connect(const endpoint& at) {
        return raw_peer{std::move(or_throw(blocking::tcp_stream::connect(at))).release()};
    }
    [[nodiscard]] static std::vector<raw_peer> connect(const endpoint& at, std::size_t count) {
        std::vector<raw_peer> peers;
        while (peers.size() < count)
            peers.push_back(connect(at));
        return peers;
    }

    /// How a connection ends that the server resets at once: connect(2) or the first read fails.
    [[nodiscard]] static std::error_code end_of_refused(const endpoint& at) {
        auto stream = blocking::tcp_stream::connect(at);
        if (!stream) return stream.error();
        std::array<std::byte, 1> buffer;
        return error_of(stream->read_some(buffer));
    }

    /// Waits for what other threads will bring about; false if the test runs out of time, which is
    /// before the watchdog ends the process.
    template <std::predicate Condition>
    [[nodiscard]] static bool eventually(Condition condition) {
        constexpr auto longest = std::min(2 * test_limit, watchdog::limit * 4 / 5);
        const auto limit = std::chrono::steady_clock::now() + longest;
        while (!condition()) {
            if (std::chrono::steady_clock::now() > limit) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        return true;
    }

    /// shutdown() on a loop of its own.
    static shutdown_report shut_down(basic_server& server, std::chrono::nanoseconds grace) {
        return simplenet::run(server.shutdown(grace), {.backend = GetParam()});
    }

private:
    watchdog watchdog_;
};

/// Sends everything back.
inline task<> echo(tcp_stream stream) {
    std::array<std::byte, 4096> buffer;
    while (auto count = co_await stream.read_some(buffer)) {
        const auto sent = co_await async_write_all(stream, const_buffer{buffer.data(), *count});
        if (!sent) co_return;
    }
}

/// Waits until it is stopped, or the peer sends something or ends.
inline task<> wait_for_peer(tcp_stream stream) {
    std::array<std::byte, 1> buffer;
    static_cast<void>(co_await stream.read_some(buffer));
}

} // namespace simplenet::v0::testing
