#include <simplenet/stream/queued_writer.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/leak_test.hpp"
#include "support/raw_peer.hpp"
#include "support/scripted_stream.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/time/deadline.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::noise;
using testing::plain_stream;
using testing::rich_stream;
using testing::script;
using testing::small_marks;
using testing::turns;
using testing::until;

static_assert(detail::vectored_writer<tcp_stream> && detail::vectored_writer<rich_stream>);
static_assert(async_writer<plain_stream> && !detail::vectored_writer<plain_stream>);
static_assert(detail::half_closable<tcp_stream> && !detail::half_closable<plain_stream>);
static_assert(!std::is_copy_constructible_v<queued_writer<tcp_stream>>);
static_assert(std::is_nothrow_move_constructible_v<queued_writer<tcp_stream>>);

class queued_writer_test : public testing::leak_test {};

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto* const at = reinterpret_cast<const std::byte*>(text.data());
    return {at, at + text.size()};
}

// --- sending

TEST_P(queued_writer_test, enqueued_bytes_are_sent_without_a_waiter) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        EXPECT_EQ(writer.enqueue("hello"), backpressure::normal);
        EXPECT_EQ(writer.queued_bytes(), 5U);
        co_await until([&] { return writer.queued_bytes() == 0; });
        EXPECT_EQ(theirs.receive(5), "hello");
    });
}

TEST_P(queued_writer_test, an_idle_writer_does_not_keep_the_loop_running) {
    auto [ours, theirs] = connect_raw();
    std::optional<queued_writer<tcp_stream>> writer{std::in_place, std::move(ours)};
    run([&]() -> task<> {
        EXPECT_TRUE(writer->enqueue("a"));
        co_return;
    });
    EXPECT_EQ(theirs.receive(1), "a"); // the loop ran until it was sent, and no longer
    EXPECT_EQ(loop().metrics().live_tasks, 0U);
    run([&]() -> task<> {
        EXPECT_TRUE(writer->enqueue("b"));
        EXPECT_TRUE(co_await writer->flush());
        writer.reset();
    });
    EXPECT_EQ(theirs.receive(2), "b");
}

TEST_P(queued_writer_test, bytes_of_every_kind_arrive_in_order_through_a_small_socket) {
    for (std::uint32_t seed = 1; seed <= 6; ++seed) {
        testing::dice dice{seed};
        auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
        const std::string sent = noise(600'000, seed);
        std::string got;
        std::thread peer{[&] { got = theirs.receive(sent.size()); }};
        run([&]() -> task<> {
            queued_writer writer{std::move(ours), {.low = 1000, .high = 20'000, .limit = 100'000}};
            for (std::size_t at = 0; at < sent.size();) {
                const std::size_t most = dice.one_in(10) ? 60'000 : dice.one_in(3) ? 3000 : 100;
                const std::size_t size = std::min(dice.up_to(most), sent.size() - at);
                std::string text = sent.substr(at, size);
                at += size;
                auto outcome = dice.one_in(3)   ? writer.enqueue(text)
                               : dice.one_in(2) ? writer.enqueue(std::move(text))
                                                : writer.enqueue(bytes_of(text));
                if (!outcome && outcome.error() == errc::queue_full) {
                    at -= size;
                    EXPECT_TRUE(co_await writer.writable());
                    continue;
                }
                EXPECT_TRUE(outcome);
                if (dice.one_in(50)) {
                    EXPECT_TRUE(co_await writer.flush());
                }
                if (outcome == backpressure::high_watermark) {
                    EXPECT_TRUE(co_await writer.writable());
                }
            }
            EXPECT_TRUE(co_await writer.graceful_shutdown());
        });
        peer.join();
        EXPECT_TRUE(got == sent);
    }
}

TEST_P(queued_writer_test, everything_enqueued_in_one_turn_is_sent_with_one_write) {
    script seen;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{seen}};
        for (int count = 0; count < 100; ++count)
            EXPECT_TRUE(writer.enqueue("0123456789"));
        EXPECT_TRUE(writer.enqueue(std::string(5000, 'x')));
        EXPECT_TRUE(writer.enqueue("end"));
        EXPECT_TRUE(co_await writer.flush());
    });
    EXPECT_EQ(seen.buffers.size(), 1U);
    EXPECT_EQ(seen.written.size(), 6003U);
}

TEST_P(queued_writer_test, tasks_of_one_turn_share_a_write) {
    script seen;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{seen}};
        std::vector<task<>> all;
        for (int count = 0; count < 10; ++count) {
            all.push_back([](auto& to) -> task<> {
                co_await yield();
                EXPECT_TRUE(to.enqueue("x"));
            }(writer));
        }
        co_await when_all(std::move(all));
        EXPECT_TRUE(co_await writer.flush());
    });
    EXPECT_EQ(seen.buffers.size(), 1U);
}

TEST_P(queued_writer_test, a_stream_without_vectored_writes_is_written_buffer_by_buffer) {
    script seen{.piece = 7};
    const std::string first(1000, 'a');
    run([&]() -> task<> {
        queued_writer writer{plain_stream{seen}};
        EXPECT_TRUE(writer.enqueue(std::string{first}));
        EXPECT_TRUE(writer.enqueue("b"));
        EXPECT_TRUE(co_await writer.flush());
        EXPECT_EQ(seen.written, first + "b");
    });
    EXPECT_EQ(seen.alive, 0);
}

TEST_P(queued_writer_test, moved_buffers_are_not_copied) {
    script seen;
    std::string text(5000, 'x');
    auto bytes = bytes_of(std::string(3000, 'y'));
    const std::vector<const std::byte*> where{reinterpret_cast<const std::byte*>(text.data()),
                                              bytes.data()};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{seen}};
        EXPECT_TRUE(writer.enqueue(std::move(text)));
        EXPECT_TRUE(writer.enqueue(std::move(bytes)));
        EXPECT_TRUE(co_await writer.flush());
    });
    EXPECT_EQ(seen.addresses, where);
}

TEST_P(queued_writer_test, borrowed_buffers_are_copied) {
    script seen;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{seen}};
        std::string text(5000, 'x');
        const std::string constant(2000, 'y');
        EXPECT_TRUE(writer.enqueue(text));
        EXPECT_TRUE(writer.enqueue(std::as_const(constant)));
        EXPECT_EQ(text.size(), 5000U);
        text.assign(5000, 'z');
        EXPECT_TRUE(co_await writer.flush());
    });
    EXPECT_TRUE(seen.written == std::string(5000, 'x') + std::string(2000, 'y'));
}

TEST_P(queued_writer_test, small_moved_buffers_are_left_empty) {
    script seen;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{seen}};
        std::string text = "short";
        EXPECT_TRUE(writer.enqueue(std::move(text)));
        EXPECT_TRUE(text.empty()); // NOLINT(bugprone-use-after-move): tests exactly that
        std::vector<std::byte> roomy = bytes_of("roomy");
        roomy.reserve(10'000);
        EXPECT_TRUE(writer.enqueue(std::move(roomy)));
        EXPECT_TRUE(co_await writer.flush());
    });
    EXPECT_EQ(seen.written, "shortroomy");
}

TEST_P(queued_writer_test, empty_buffers_can_be_enqueued) {
    script seen;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{seen}, small_marks};
        EXPECT_EQ(writer.enqueue(const_buffer{}), backpressure::normal);
        EXPECT_EQ(writer.enqueue(std::string{}), backpressure::normal);
        EXPECT_TRUE(co_await writer.flush());
    });
    EXPECT_TRUE(seen.buffers.empty());
}

// --- the marks

TEST_P(queued_writer_test, backpressure_lasts_from_the_high_to_the_low_mark) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}, small_marks};
        EXPECT_EQ(writer.enqueue("0123456"), backpressure::normal);
        EXPECT_FALSE(writer.high_watermark_active());
        EXPECT_EQ(writer.enqueue("7"), backpressure::high_watermark);
        EXPECT_TRUE(writer.high_watermark_active());
        peer.make_room(4);
        co_await until([&] { return writer.queued_bytes() == 4; });
        EXPECT_TRUE(writer.high_watermark_active());
        EXPECT_EQ(writer.enqueue(""), backpressure::high_watermark);
        peer.make_room(1);
        co_await until([&] { return writer.queued_bytes() == 3; });
        EXPECT_FALSE(writer.high_watermark_active());
        EXPECT_EQ(writer.enqueue("8"), backpressure::normal);
    });
}

TEST_P(queued_writer_test, writable_waits_until_below_the_low_mark) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}, small_marks};
        EXPECT_TRUE(co_await writer.writable());
        EXPECT_TRUE(writer.enqueue("0123"));
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await writer.writable(); });
        co_await turns(5);
        EXPECT_FALSE(waiting.done());
        peer.make_room(1);
        EXPECT_TRUE(co_await waiting);
        EXPECT_EQ(writer.queued_bytes(), 3U);
    });
}

TEST_P(queued_writer_test, a_buffer_beyond_the_limit_is_refused_completely) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}, small_marks};
        EXPECT_TRUE(writer.enqueue("0123456789"));
        std::string text = "abcdefg";
        EXPECT_EQ(error_of(writer.enqueue(text)), errc::queue_full);
        EXPECT_EQ(error_of(writer.enqueue(std::move(text))), errc::queue_full);
        EXPECT_EQ(text, "abcdefg"); // NOLINT(bugprone-use-after-move): tests exactly that
        std::vector<std::byte> bytes(1000);
        EXPECT_EQ(error_of(writer.enqueue(std::move(bytes))), errc::queue_full);
        EXPECT_EQ(bytes.size(), 1000U); // NOLINT(bugprone-use-after-move)
        EXPECT_EQ(writer.queued_bytes(), 10U);
        EXPECT_EQ(writer.enqueue("abcdef"), backpressure::high_watermark); // to the byte
        EXPECT_EQ(error_of(writer.enqueue("g")), errc::queue_full);
        peer.make_room(100);
        EXPECT_TRUE(co_await writer.flush());
        EXPECT_EQ(peer.written, "0123456789abcdef");
    });
}

// --- flush

TEST_P(queued_writer_test, flush_waits_only_for_bytes_enqueued_before_it) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}};
        EXPECT_TRUE(writer.enqueue("before"));
        auto before = writer.flush();
        EXPECT_TRUE(writer.enqueue("after"));
        auto flushing =
            spawn([](auto what) -> task<result<>> { co_return co_await std::move(what); },
                  std::move(before));
        peer.make_room(5);
        co_await until([&] { return writer.queued_bytes() == 6; });
        co_await turns(3);
        EXPECT_FALSE(flushing.done());
        peer.make_room(1);
        EXPECT_TRUE(co_await flushing);
        EXPECT_EQ(writer.queued_bytes(), 5U);
    });
}

TEST_P(queued_writer_test, flush_of_an_idle_writer_returns_at_once_and_lets_others_run) {
    script peer;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}};
        EXPECT_TRUE(co_await writer.flush());
        bool ran = false;
        spawn([&]() -> task<> {
            ran = true;
            co_return;
        });
        while (!ran)
            EXPECT_TRUE(co_await writer.flush());
    });
}

TEST_P(queued_writer_test, a_stop_ends_only_the_wait) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}, small_marks};
        EXPECT_TRUE(writer.enqueue("0123456789"));
        auto flushing = spawn([&]() -> task<result<>> { co_return co_await writer.flush(); });
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await writer.writable(); });
        co_await turns(3);
        flushing.request_stop();
        waiting.request_stop();
        EXPECT_EQ(error_of(co_await flushing), std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await waiting), std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await with_timeout(writer.flush(), 1ms)), errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(writer.writable(), -1s)), errc::deadline_exceeded);
        peer.make_room(100);
        EXPECT_TRUE(co_await with_timeout(writer.flush(), 1h));
        EXPECT_EQ(peer.written, "0123456789");
    });
}

TEST_P(queued_writer_test, a_stopped_scope_may_enqueue_but_not_wait) {
    script peer;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}};
        auto child = spawn([&]() -> task<result<>> {
            while (!co_await this_task::stop_requested())
                co_await yield();
            EXPECT_TRUE(writer.enqueue("last words"));
            co_return co_await writer.flush();
        });
        child.request_stop();
        EXPECT_EQ(error_of(co_await child), std::errc::operation_canceled);
        EXPECT_TRUE(co_await writer.flush());
        EXPECT_EQ(peer.written, "last words");
    });
}

TEST_P(queued_writer_test, the_scope_that_made_the_writer_does_not_stop_the_sending) {
    auto [ours, theirs] = connect_raw_local({.ours = 4096, .theirs = 4096});
    const std::string sent = noise(200'000);
    std::optional<queued_writer<local_stream>> writer;
    run([&]() -> task<> {
        auto maker = spawn([&]() -> task<> {
            writer.emplace(std::move(ours));
            EXPECT_TRUE(writer->enqueue(sent));
            co_await turns(3);
            while (!co_await this_task::stop_requested())
                co_await yield();
        });
        co_await turns(5);
        maker.request_stop();
        co_await maker;
        std::string got;
        std::thread peer{[&] { got = theirs.receive(sent.size()); }};
        EXPECT_TRUE(co_await writer->flush());
        peer.join();
        EXPECT_TRUE(got == sent);
        writer.reset();
    });
}

// --- misuse

class queued_writer_death_test : public testing::backend_test {};

TEST_P(queued_writer_death_test, marks_that_contradict_each_other_stop_the_program) {
    script seen;
    EXPECT_DEATH((queued_writer{rich_stream{seen}, {.low = 0}}), "low watermark of 0 bytes");
    EXPECT_DEATH((queued_writer{rich_stream{seen}, {.low = 9, .high = 8}}), "above its high one");
    EXPECT_DEATH((queued_writer{rich_stream{seen}, {.low = 1, .high = 9, .limit = 8}}),
                 "high watermark .* above its limit");
}

TEST_P(queued_writer_death_test, a_writer_needs_a_running_loop) {
    script seen;
    queued_writer writer{rich_stream{seen}};
    EXPECT_DEATH(static_cast<void>(writer.enqueue("x")), "needs a running event loop");
}

TEST_P(queued_writer_death_test, a_writer_belongs_to_one_loop) {
    script seen{.room = 0};
    queued_writer writer{rich_stream{seen}};
    loop().spawn([&]() -> task<> {
        EXPECT_TRUE(writer.enqueue("x"));
        co_return;
    });
    loop().poll();
    EXPECT_DEATH(simplenet::run([](auto& used) -> task<> {
                     static_cast<void>(used.enqueue("y"));
                     co_return;
                 }(writer)),
                 "belongs to the loop that used it first");
    destroy_loop(); // while the objects of its task exist
}

TEST_P(queued_writer_death_test, a_writer_that_was_moved_from_stops_the_program) {
    script seen;
    queued_writer writer{rich_stream{seen}};
    const queued_writer other{std::move(writer)};
    EXPECT_DEATH(static_cast<void>(writer.enqueue("x")), "moved from"); // NOLINT
}

INSTANTIATE_TEST_SUITE_P(backends, queued_writer_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, queued_writer_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
