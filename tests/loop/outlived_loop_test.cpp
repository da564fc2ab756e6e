// Objects that outlive a loop, or are about to leave it when it ends (promise 15).

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;

class outlived_loop_test : public testing::backend_test {
protected:
    /// Makes the loop receive ahead for `stream`.
    void arm(tcp_stream& stream) {
        run([&]() -> task<> {
            std::array<std::byte, 8> bytes{};
            EXPECT_EQ(error_of(co_await with_timeout(stream.read_some(bytes), 1ms)),
                      errc::deadline_exceeded);
        });
    }
};

// With io_uring the destructor walks the records, and must not wait for the end of the listener
// during the walk: that could free the stream's record, and the walk would continue in freed
// memory.
TEST_P(outlived_loop_test, a_loop_ends_beside_a_closing_stream_and_an_accepting_listener) {
    for (const bool listener_first : {true, false}) {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        std::vector<testing::raw_connection<tcp_stream>> connections;
        for (int each = 0; each < 4; ++each)
            connections.push_back(testing::connect_raw());
        auto accepting = [](tcp_listener mine) -> task<> {
            while (co_await mine.accept()) {
            }
        };
        if (listener_first) loop().spawn(accepting(std::move(listener)));
        static_cast<void>(loop().poll());
        for (auto& each : connections) {
            loop().spawn([](tcp_stream& stream) -> task<> {
                std::array<std::byte, 8> bytes{};
                static_cast<void>(co_await with_timeout(stream.read_some(bytes), 1ms));
            }(each.ours));
        }
        static_cast<void>(loop().run_for(20ms));
        if (!listener_first) loop().spawn(accepting(std::move(listener)));
        static_cast<void>(loop().run_for(1ms));

        for (auto& each : connections)
            each.ours.close(); // its completion arrives with the next poll
        connections.clear();
        remake_loop();
    }
}

// Otherwise bytes that io_uring has received for it would be lost, and the record would keep the
// buffers.
TEST_P(outlived_loop_test, a_socket_in_release_is_released_or_closed) {
    for (int turns = 0; turns < 6; ++turns) {
        const std::size_t before = testing::open_descriptors();
        auto connection = testing::connect_raw();
        auto& [ours, theirs] = connection;
        arm(ours);
        result<tcp_stream::released> outcome = fail(errc::queue_full);
        const auto releases = [&]() -> task<> { outcome = co_await std::move(ours).release(); };
        const auto goes_on = [&]() -> task<> {
            theirs.send("early");
            spawn(releases()).detach();
            co_await testing::turns(turns);
            loop().stop();
        };
        loop().spawn(goes_on());
        loop().run();

        remake_loop();

        if (outcome) {
            EXPECT_TRUE(testing::is_open(outcome->socket.native_handle()));
            std::string text;
            for (const std::byte each : outcome->unread)
                text += static_cast<char>(each);
            EXPECT_EQ(text + testing::read_text(outcome->socket, 5 - text.size()), "early");
            outcome = fail(errc::queue_full);
        } else {
            EXPECT_EQ(outcome.error(), std::errc::operation_canceled);
        }
        const auto end = theirs.receive_to_the_end();
        EXPECT_TRUE(end == errc::end_of_stream || end == std::errc::connection_reset);
        theirs.close();
        EXPECT_EQ(testing::open_descriptors(), before) << "after " << turns << " turns";
    }
}

INSTANTIATE_TEST_SUITE_P(backends, outlived_loop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
