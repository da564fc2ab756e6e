#pragma once
// pool_servers: what the connections of a connection_pool lead to, in memory.

#include <simplenet/stream/duplex.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {

/// The servers of a pool in memory: a duplex for each connection.
class pool_servers {
public:
    struct connection {
        std::string key;
        duplex_stream peer;
    };

    /// For the pool.
    [[nodiscard]] auto connect() {
        return [this](std::string_view key) -> task<result<duplex_stream>> {
            ++begun;
            if (delay != delay.zero()) {
                const auto slept = co_await async_sleep(delay);
                if (!slept) co_return fail(slept);
            }
            if (throws) throw std::runtime_error{"connect"};
            if (error) co_return fail(error);
            auto [ours, theirs] = duplex();
            made.push_back({.key = std::string{key}, .peer = std::move(theirs)});
            co_return std::move(ours);
        };
    }
    [[nodiscard]] std::vector<std::string> keys() const {
        std::vector<std::string> all;
        for (const connection& each : made)
            all.push_back(each.key);
        return all;
    }
    /// Whether our end of the connection with this number is closed.
    static task<bool> is_closed(connection& of) {
        const auto written = co_await of.peer.write_some("x");
        co_return !written;
    }

    std::deque<connection> made;
    int begun = 0;
    std::chrono::nanoseconds delay{0};
    std::error_code error;
    bool throws = false;
};

} // namespace simplenet::v0::testing
