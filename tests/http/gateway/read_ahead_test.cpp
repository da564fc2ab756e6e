// Answers that pass through a gateway, with clients of all speeds.

#include "http/gateway/read_ahead_test.hpp"
#include "http/server/exchange.hpp"
#include "support/error_of.hpp"
#include "sys/processors.hpp"

#include <simplenet/http/errc.hpp>
#include <simplenet/runtime/run_blocking.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <latch>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::async_reader_ref;
using http::detail::ahead_limits;
using http::detail::disk_room;
using http::detail::read_ahead;
using http::detail::shared_room;

/// Occupies all threads of run_blocking(), as a disk does that answers no more.
class stuck_disk {
public:
    stuck_disk()
        : thread_{[this] {
            event_loop loop = or_throw(event_loop::create());
            for (int each = 0; each < threads(); ++each)
                loop.spawn(occupy_one());
            loop.run();
        }} {
        all_occupied_.wait();
    }
    void release() { released_.count_down(); }

private:
    static int threads() {
        return std::max(8, 4 * static_cast<int>(detail::sys::usable_processors()));
    }
    task<> occupy_one() {
        auto occupy = [this] {
            all_occupied_.count_down();
            released_.wait();
        };
        co_await run_blocking(occupy);
    }

    std::latch all_occupied_{threads()};
    std::latch released_{1};
    std::jthread thread_;
};

TEST_P(read_ahead_test, every_byte_arrives_in_order) {
    for (const std::size_t size : {1, 16384, 16385, 3'000'000}) {
        serve_source(size, 65536);

        EXPECT_EQ(body_of_chunks(ask(get)), numbered(size));

        end_loops();
    }
}

TEST_P(read_ahead_test, an_empty_body_is_an_empty_answer) {
    serve_source(0, 65536);

    EXPECT_TRUE(ask(get).ends_with("Content-Length: 0\r\nConnection: close\r\n\r\n"));
}

TEST_P(read_ahead_test, the_source_is_read_to_its_end_although_the_client_reads_nothing) {
    constexpr std::size_t size = kernel_buffers;
    serve_source(size, size);
    raw_peer client = connect_and_ask();

    wait_until([&] { return taken_ == size; });

    EXPECT_FALSE(ended_);
    EXPECT_EQ(body_of_chunks(rest_of(client)).size(), size);
}

TEST_P(read_ahead_test, a_client_that_reads_nothing_costs_no_more_than_the_limit) {
    constexpr std::size_t size = 50'000'000;
    serve_source(size, 65536);
    raw_peer client = connect_and_ask();
    wait_until_full();

    EXPECT_LT(taken_, size);
    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
}

TEST_P(read_ahead_test, a_file_holds_what_memory_does_not) {
    constexpr std::size_t size = 2 * kernel_buffers;
    serve_within(size, {.memory = 65536, .file = std::uint64_t{64} << 20U, .directory = "/tmp"});
    raw_peer client = connect_and_ask();

    wait_until([&] { return taken_ == size; });

    EXPECT_FALSE(ended_);
    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
    EXPECT_FALSE(disk_failed_);
}

TEST_P(read_ahead_test, a_small_file_is_used_again_and_again) {
    constexpr std::size_t size = 3 * kernel_buffers;
    serve_within(size, {.memory = 1, .file = 3 * 65536, .directory = "/tmp"});
    raw_peer client = connect_and_ask();
    wait_until_full();

    EXPECT_LT(taken_, size);
    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
}

TEST_P(read_ahead_test, answers_share_the_disk_and_give_it_back) {
    constexpr std::size_t size = 2 * kernel_buffers;
    constexpr std::uint64_t all = 5 * 65536;
    const auto budget = std::make_shared<disk_room>(all);
    serve_within(size, {.memory = 1,
                        .file = std::uint64_t{64} << 20U,
                        .directory = "/tmp",
                        .shared = {.disk = budget}});
    raw_peer client = connect_and_ask();
    wait_until_full();

    EXPECT_LT(taken_, size);
    EXPECT_EQ(budget->left(), 3 * 65536U);
    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
    end_loops();
    EXPECT_EQ(budget->left(), all);
}

// 5000 clients that did not read took 2.5 GB.
TEST_P(read_ahead_test, answers_share_memory_and_give_it_back) {
    constexpr std::size_t size = 2 * kernel_buffers;
    constexpr std::uint64_t all = 6 * 16384;
    const auto room = std::make_shared<shared_room>(all);
    EXPECT_TRUE(room->take(16384, 0)); // by another answer
    serve_within(size, {.memory = size, .shared = {.memory = room}});
    raw_peer client = connect_and_ask();

    // It has as much as all others can have, less one block.
    wait_until([&] { return room->left() == 3 * 16384U; });
    wait_until_full();
    EXPECT_LT(taken_, size);
    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
    end_loops();
    EXPECT_EQ(room->left(), all - 16384);
}

TEST_P(read_ahead_test, an_answer_gives_memory_back_as_its_client_reads) {
    constexpr std::size_t size = 2 * kernel_buffers;
    constexpr std::uint64_t all = 2 * size + 65536;
    const auto room = std::make_shared<shared_room>(all);
    std::atomic<bool> goes_on = false;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        paused_source source{size, goes_on, taken_};
        const ahead_limits limits{.memory = size, .shared = {.memory = room}};
        read_ahead forward{source, answer, limits};
        co_return co_await forward.run();
    });
    serve(std::move(routes));
    raw_peer client = connect_and_ask();
    wait_until([&] { return taken_ == size; });
    EXPECT_LT(room->left(), all - 65536);

    std::string text;
    wait_until([&] {
        text += receive_what_comes(client);
        return room->left() == all;
    });

    goes_on = true;
    EXPECT_EQ(body_of_chunks(text + rest_of(client)), numbered(size) + "end");
}

// The block that was lent for the file had no place in it any more.
TEST_P(read_ahead_test, an_answer_without_memory_goes_on_when_its_file_was_given_back) {
    constexpr std::size_t size = 2 * kernel_buffers;
    const auto none = std::make_shared<shared_room>(0);
    constexpr std::uint64_t all = std::uint64_t{1} << 30U;
    const auto disk = std::make_shared<disk_room>(all);
    std::atomic<bool> goes_on = false;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        paused_source source{size, goes_on, taken_};
        const ahead_limits limits{.memory = size,
                                  .file = std::uint64_t{64} << 20U,
                                  .directory = "/tmp",
                                  .shared = {.memory = none, .disk = disk}};
        read_ahead forward{source, answer, limits};
        co_return co_await forward.run();
    });
    serve(std::move(routes));
    raw_peer client = connect_and_ask();
    wait_until([&] { return taken_ == size; });
    EXPECT_LT(disk->left(), all);

    std::string text;
    wait_until([&] {
        text += receive_what_comes(client);
        return disk->left() == all;
    });

    goes_on = true;
    EXPECT_EQ(body_of_chunks(text + rest_of(client)), numbered(size) + "end");
}

TEST_P(read_ahead_test, what_has_no_share_of_the_memory_goes_to_the_disk) {
    constexpr std::size_t size = 2 * kernel_buffers;
    const auto none = std::make_shared<shared_room>(0);
    const auto disk = std::make_shared<disk_room>(std::uint64_t{1} << 30U);
    serve_within(size, {.memory = size,
                        .file = std::uint64_t{64} << 20U,
                        .directory = "/tmp",
                        .shared = {.memory = none, .disk = disk}});
    raw_peer client = connect_and_ask();

    wait_until([&] { return taken_ == size; });

    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
    EXPECT_FALSE(disk_failed_);
}

TEST_P(read_ahead_test, a_disk_that_cannot_be_used_loses_nothing) {
    constexpr std::size_t size = 2 * kernel_buffers;
    serve_within(size,
                 {.memory = 65536, .file = std::uint64_t{64} << 20U, .directory = "/nowhere"});
    raw_peer client = connect_and_ask();
    wait_until_full();

    EXPECT_LT(taken_, size);
    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
    end_loops();
    EXPECT_TRUE(disk_failed_);
}

TEST_P(read_ahead_test, a_client_that_takes_nothing_does_not_hold_the_source) {
    serve_within(4 * kernel_buffers, {.memory = 65536, .hold = 50ms});
    raw_peer client = connect_and_ask();

    wait_until([&] { return ended_.load(); });

    EXPECT_TRUE(held_);
    EXPECT_FALSE(failed_);
    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
}

// The kernel takes more only when a third of its buffer is free, which takes this client longer.
TEST_P(read_ahead_test, a_client_that_reads_slowly_takes_something) {
    constexpr std::size_t size = kernel_buffers;
    constexpr auto hold = 2s * patience;
    serve_within(size, {.memory = 1, .hold = hold});
    raw_peer client = connect();
    const int small = 65536; // so that it takes little at a time
    ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client.send(get);

    std::string all;
    for (const auto end = std::chrono::steady_clock::now() + 2 * hold;
         std::chrono::steady_clock::now() < end;) {
        all += client.receive(8192);
        std::this_thread::sleep_for(32ms * patience);
    }
    EXPECT_FALSE(ended_);

    EXPECT_EQ(body_of_chunks(all + rest_of(client)), numbered(size));
    end_loops();
    EXPECT_FALSE(held_);
}

TEST_P(read_ahead_test, a_client_is_not_blamed_for_a_slow_disk) {
    constexpr std::size_t size = 4 * kernel_buffers;
    constexpr auto hold = 1s * patience;
    serve_within(size,
                 {.memory = kernel_buffers, .file = 3 * 65536, .directory = "/tmp", .hold = hold});
    raw_peer client = connect_and_ask();
    wait_until_full();
    stuck_disk disk;

    // All that is in memory: then the disk has to be read to make room.
    std::string first;
    while (first.size() + 3 * 65536 < taken_)
        first += receive_what_comes(client);
    // What does not happen cannot be waited for. The first of the two sees that the client has
    // taken what was in the kernel.
    std::this_thread::sleep_for(2 * hold + 500ms);
    EXPECT_FALSE(ended_);
    disk.release();

    const std::string rest = rest_of(client);
    end_loops();
    EXPECT_FALSE(held_);
    EXPECT_EQ(body_of_chunks(first + rest), numbered(size));
}

TEST_P(read_ahead_test, a_source_that_fails_makes_an_answer_that_does_not_look_complete) {
    serve_source(100'000, 65536, std::make_error_code(std::errc::connection_reset));
    raw_peer client = connect_and_ask();

    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
    EXPECT_TRUE(failed_);
}

TEST_P(read_ahead_test, a_client_that_goes_away_ends_the_reading) {
    serve_source(std::size_t{1} << 40U, 65536);
    {
        raw_peer client = connect();
        client.send(get);
        wait_until([&] { return taken_ != 0; });
    }

    wait_until([&] { return ended_.load(); });

    EXPECT_FALSE(failed_);
}

TEST_P(read_ahead_test, a_client_that_takes_nothing_does_not_hold_a_source_that_others_wait_for) {
    const std::array one{http::backend{"a:1"}};
    const http::detail::backend_set set{one, 10s};
    const auto lease = [&] {
        http::detail::backend_marks tried;
        return *set.pick(tried, std::chrono::steady_clock::now());
    };
    const http::detail::backend_lease held = lease();
    http::detail::backend_lease waiting = lease();
    const auto is_wanted = [&held](auto now, auto so_long) {
        return held.do_others_wait(now, so_long);
    };
    serve_within(4 * kernel_buffers,
                 {.memory = 65536, .is_wanted = is_wanted, .hold_while_wanted = 10ms});
    raw_peer client = connect_and_ask();
    wait_until_full();
    EXPECT_FALSE(ended_);

    waiting.waits_on_new();
    wait_until([&] { return ended_.load(); });

    EXPECT_TRUE(held_);
    end_loops();
}

TEST_P(read_ahead_test, a_client_that_goes_away_is_no_failure_of_a_source_that_has_failed) {
    constexpr std::size_t size = 2 * kernel_buffers;
    serve_within(size, {.memory = size}, std::make_error_code(std::errc::connection_reset));
    {
        raw_peer client = connect_and_ask();
        wait_until([&] { return taken_ == size; });
    }
    wait_until([&] { return ended_.load(); });
    end_loops();

    EXPECT_FALSE(failed_);
}

// Eight clients that took 8 KiB a second of large answers had kept PHP from all others.
TEST_P(read_ahead_test, a_client_that_would_need_minutes_does_not_hold_a_backend_that_others_need) {
    const auto budget = std::make_shared<disk_room>(8 * kernel_buffers);
    // A quarter of a second for 64 KiB; what is stored, half of the budget, needs three minutes.
    serve_within(100 * kernel_buffers, {.memory = 1,
                                        .file = std::uint64_t{1} << 30U,
                                        .directory = "/tmp",
                                        .shared = {.disk = budget},
                                        .is_wanted = [](auto, auto) { return true; }});
    raw_peer client = connect();
    const int small = 65536;
    ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client.send(get);

    while (!ended_) {
        client.receive(65536);
        std::this_thread::sleep_for(250ms); // the pace of the client
    }

    end_loops();
    EXPECT_TRUE(held_);
}

TEST_P(read_ahead_test, a_client_cannot_hold_a_backend_that_is_done) {
    constexpr std::size_t size = 2 * kernel_buffers;
    serve_within(size, {.memory = 1,
                        .hold = 50ms,
                        .is_wanted = [](auto, auto) { return true; },
                        .hold_while_wanted = 50ms,
                        .is_free = [] { return true; }});
    raw_peer client = connect_and_ask();
    wait_until_full();
    std::this_thread::sleep_for(1500ms); // what does not happen cannot be waited for
    EXPECT_LT(taken_, size);

    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
    end_loops();
    EXPECT_FALSE(held_);
}

TEST_P(read_ahead_test, the_disk_is_free_again_while_the_source_is_silent) {
    constexpr std::size_t size = 2 * kernel_buffers;
    const auto budget = std::make_shared<disk_room>(std::uint64_t{64} << 20U);
    std::atomic<bool> goes_on = false;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        paused_source source{size, goes_on, taken_};
        read_ahead forward{
            source,
            answer,
            {.memory = 1, .file = 2 * size, .directory = "/tmp", .shared = {.disk = budget}}};
        co_return co_await forward.run();
    });
    serve(std::move(routes));
    raw_peer client = connect_and_ask();
    wait_until([&] { return budget->left() < (std::uint64_t{60} << 20U); });

    std::string all;
    while (budget->left() != std::uint64_t{64} << 20U)
        all += receive_what_comes(client);
    goes_on = true;

    EXPECT_EQ(body_of_chunks(all + rest_of(client)), numbered(size) + "end");
}

/// A piece for each time that the test lets one through.
class gated_source {
public:
    explicit gated_source(std::atomic<int>& gate)
        : gate_{gate} {}
    task<result<std::size_t>> read_some(mutable_buffer into) {
        while (gate_ == 0) {
            const auto slept = co_await async_sleep(1ms);
            if (!slept) co_return fail(slept);
        }
        --gate_;
        if (++count_ == 4) co_return fail(errc::end_of_stream);
        std::memcpy(into.data(), "event\n", 6);
        co_return std::size_t{6};
    }

private:
    std::atomic<int>& gate_;
    int count_ = 0;
};

/// Fills the socket of an answer behind the library's back.
void fill_socket_of(http::response& answer) {
    const int fd = http::detail::exchange::of(answer).native_handle();
    const std::string noise(65536, '#');
    while (::send(fd, noise.data(), noise.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

// A client that had not read its last answer held the backend of the next one, by its head alone.
TEST_P(read_ahead_test, a_head_that_cannot_leave_holds_no_source) {
    constexpr std::size_t size = 100'000;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        fill_socket_of(answer);
        counted_source source{size, errc::end_of_stream, taken_};
        read_ahead forward{source, answer, ahead_limits{}};
        forward.send_head_first();
        co_return co_await forward.run();
    });
    serve(std::move(routes));
    raw_peer client = connect_and_ask();

    wait_until([&] { return taken_ == size; });

    std::string all = rest_of(client);
    all.erase(0, all.find_first_not_of('#'));
    EXPECT_EQ(body_of_chunks(all), numbered(size));
}

TEST_P(read_ahead_test, each_piece_leaves_at_once) {
    std::atomic<int> gate = 0;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        gated_source source{gate};
        read_ahead forward{source, answer, ahead_limits{}};
        co_return co_await forward.run();
    });
    serve(std::move(routes));
    raw_peer client = connect_and_ask();

    for (int each = 0; each < 3; ++each) {
        gate = 1;
        EXPECT_TRUE(receive_until(client, "event\n\r\n").ends_with("6\r\nevent\n\r\n"));
    }
    gate = 1;

    EXPECT_EQ(rest_of(client), "0\r\n\r\n");
}

TEST(ignored_time_test, counts_the_time_in_which_something_is_offered) {
    using http::detail::ignored_time;
    constexpr ignored_time::time_point begin{};
    ignored_time ignored;
    ignored.begin(begin, 100);
    EXPECT_EQ(ignored.until(begin + 1s), 0s);
    ignored.offered(begin + 1s);
    EXPECT_EQ(ignored.until(begin + 3s), 2s);
    ignored.answered(begin + 3s);
    ignored.offered(begin + 10s);
    EXPECT_EQ(ignored.until(begin + 11s), 3s);
    ignored.taken(begin + 11s, 99 + ignored_time::something);
    EXPECT_EQ(ignored.until(begin + 12s), 4s);
    ignored.taken(begin + 12s, 100 + ignored_time::something);
    EXPECT_EQ(ignored.until(begin + 13s), 1s);
    ignored.begin(begin + 14s, 0);
    EXPECT_EQ(ignored.until(begin + 16s), 2s);
}

// The bytes of an earlier answer that waits in the socket are not the client's either.
TEST(ignored_time_test, a_client_that_takes_an_earlier_answer_takes_something) {
    using http::detail::ignored_time;
    constexpr ignored_time::time_point begin{};
    ignored_time ignored;
    ignored.begin(begin, -1'000'000);
    ignored.offered(begin);
    ignored.taken(begin + 1s, -1'000'000 + ignored_time::something);
    EXPECT_EQ(ignored.until(begin + 2s), 1s);
}

INSTANTIATE_TEST_SUITE_P(backends, read_ahead_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
