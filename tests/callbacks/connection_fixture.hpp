#pragma once
// connection_fixture: a callbacks::server on one loop, for the tests of its connections.

#include "called.hpp"
#include "support/served_group.hpp"

#include <simplenet/callbacks/server.hpp>

#include <atomic>
#include <cstddef>
#include <optional>

namespace simplenet::v0::testing {

/// More than the kernel takes of a connection whose peer does not read.
inline constexpr std::size_t too_much = std::size_t{16} << 20U;

/// A server on one loop, whose handlers each test sets before it starts.
class connection_fixture : public served_test {
protected:
    void SetUp() override {
        served_test::SetUp();
        if (IsSkipped()) return;
        group_.emplace(make_group(1));
        handlers_.on_connection = seen_.counter();
    }
    /// Starts the server, and connects to it.
    raw_peer begin(const server_options& with = {}) {
        server_.emplace(*group_, endpoint::loopback(0), handlers_, with);
        server_->start();
        auto peer = connect(server_->local_endpoint());
        // Otherwise the kernel enlarges it for a peer that reads fast, up to more than `too_much`.
        set_buffers(peer.fd(), 1024 * 1024);
        EXPECT_TRUE(eventually([&] { return seen_.ups() == 1; }));
        return peer;
    }
    [[nodiscard]] bool went_down() const {
        return eventually([&] { return seen_.downs() == 1; });
    }
    /// Runs `function()` on the loop, and waits for its end.
    template <class Function>
    void on_loop(Function function) {
        std::atomic<bool> is_done = false;
        (*group_)[0].post([&] {
            function();
            is_done = true;
        });
        EXPECT_TRUE(eventually([&] { return is_done.load(); }));
    }
    [[nodiscard]] callbacks::connection_ptr ours() const { return seen_.connection(); }

    called seen_;
    callbacks::handlers handlers_;
    std::optional<event_loop_group> group_;
    std::optional<callbacks::server> server_;
};

inline void echo_back(const callbacks::connection_ptr& connection, callbacks::buffer& input) {
    connection->send(input);
    input.retrieve_all();
}

} // namespace simplenet::v0::testing
