// Stored answers that share a disk, and make room on it for each other.

#include "http/gateway/read_ahead_test.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::async_reader_ref;
using http::detail::ahead_limits;
using http::detail::disk_room;
using http::detail::read_ahead;

class shared_disk_test : public read_ahead_test {
protected:
    /// Serves `size` bytes at `/`, whose end does not come if `silent`, and more than `on_disk` has
    /// room for at `/large`.
    void serve_both(std::size_t size, std::uint64_t on_disk, bool silent = false) {
        const auto budget = std::make_shared<disk_room>(on_disk);
        const auto answer_with = [=, this](std::size_t bytes) {
            return [=, this](http::request&, http::response& answer) -> task<result<>> {
                const ahead_limits limits{
                    .memory = 1,
                    .file = std::uint64_t{1} << 30U,
                    .directory = "/tmp",
                    .shared = {.disk = budget},
                    .is_wanted = [this](auto, auto) { return wanted_.load(); },
                    .hold_while_wanted = 50ms};
                counted_source whole{bytes, errc::end_of_stream, taken_};
                paused_source paused{bytes, goes_on_, taken_};
                const bool pauses = silent && bytes == size;
                read_ahead forward{pauses ? async_reader_ref{paused} : async_reader_ref{whole},
                                   answer, limits};
                const result<> done = co_await forward.run();
                if (forward.is_held()) ++cut_;
                co_return done;
            };
        };
        http::router routes;
        routes.get("/", answer_with(size));
        routes.get("/large", answer_with(100 * kernel_buffers));
        serve(std::move(routes));
    }
    /// A client that takes nothing of an answer that is complete, and nobody needs the room.
    raw_peer connect_and_store(std::size_t size) {
        raw_peer client = connect_and_ask();
        wait_until([&] { return taken_ == size; });
        std::this_thread::sleep_for(200ms); // four times the limit, which must not count yet
        EXPECT_EQ(cut_, 0);
        return client;
    }
    raw_peer ask_for_the_large_one() {
        wanted_ = true;
        raw_peer client = connect();
        client.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
        return client;
    }

    const std::atomic<bool> goes_on_ = false;
    std::atomic<int> cut_ = 0;
    std::atomic<bool> wanted_ = false;
};

// 160 clients that read nothing filled the disk with answers that were complete, and kept it: the
// others' answers held the backend.
TEST_P(shared_disk_test, a_stored_answer_whose_client_takes_nothing_makes_room_for_others) {
    // It has more than a third, whatever the kernel has of it, so the other one has less.
    constexpr std::size_t size = 4 * kernel_buffers - 1'000'000;
    serve_both(size, 8 * kernel_buffers);
    raw_peer stored = connect_and_store(size);

    const raw_peer other = ask_for_the_large_one();

    wait_until([&] { return cut_ == 2; });
    EXPECT_EQ(stored.receive_to_the_end(), std::errc::connection_reset);
}

// A script that takes its time kept the room of what it had sent.
TEST_P(shared_disk_test, an_answer_whose_source_is_silent_makes_room_too) {
    constexpr std::size_t size = 4 * kernel_buffers - 1'000'000;
    serve_both(size, 8 * kernel_buffers, true);
    raw_peer stored = connect_and_store(size);

    const raw_peer other = ask_for_the_large_one();

    wait_until([&] { return cut_ == 2; });
    EXPECT_EQ(stored.receive_to_the_end(), std::errc::connection_reset);
}

// A single client with a large answer used to end all that were stored.
TEST_P(shared_disk_test, a_stored_answer_makes_no_room_for_one_that_has_more) {
    constexpr std::size_t size = kernel_buffers + kernel_buffers / 4; // less than a third
    serve_both(size, 4 * kernel_buffers);
    raw_peer stored = connect_and_store(size);

    const raw_peer other = ask_for_the_large_one();

    wait_until([&] { return cut_ == 1; });
    std::this_thread::sleep_for(200ms); // what does not happen cannot be waited for
    EXPECT_EQ(body_of_chunks(rest_of(stored)), numbered(size));
    EXPECT_EQ(cut_, 1);
}

INSTANTIATE_TEST_SUITE_P(backends, shared_disk_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
