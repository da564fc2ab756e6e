// The end of a queued_writer: by an error, a shutdown, its destruction, or the end of its loop.

#include <simplenet/stream/queued_writer.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/leak_test.hpp"
#include "support/raw_peer.hpp"
#include "support/scripted_stream.hpp"

#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <gmock/gmock.h>

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
using ::testing::ElementsAre;
using testing::noise;
using testing::plain_stream;
using testing::rich_stream;
using testing::script;
using testing::small_marks;
using testing::turns;
using testing::until;

class queued_writer_end_test : public testing::leak_test {};

// --- errors

TEST_P(queued_writer_end_test, a_write_error_reaches_every_present_and_later_caller) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}, small_marks};
        EXPECT_TRUE(writer.enqueue("0123456789"));
        auto flushing = spawn([&]() -> task<result<>> { co_return co_await writer.flush(); });
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await writer.writable(); });
        co_await turns(3);
        peer.error = std::make_error_code(std::errc::host_unreachable);
        EXPECT_EQ(error_of(co_await flushing), std::errc::host_unreachable);
        EXPECT_EQ(error_of(co_await waiting), std::errc::host_unreachable);
        EXPECT_EQ(writer.queued_bytes(), 0U);
        EXPECT_FALSE(writer.high_watermark_active());
        peer.error = {};
        for (int round = 0; round < 2; ++round) {
            EXPECT_EQ(error_of(writer.enqueue("x")), std::errc::host_unreachable);
            EXPECT_EQ(error_of(writer.enqueue(std::string(1000, 'x'))),
                      std::errc::host_unreachable);
            EXPECT_EQ(error_of(co_await writer.flush()), std::errc::host_unreachable);
            EXPECT_EQ(error_of(co_await writer.writable()), std::errc::host_unreachable);
            EXPECT_EQ(error_of(co_await writer.graceful_shutdown()), std::errc::host_unreachable);
        }
    });
    EXPECT_EQ(peer.alive, 0);
}

TEST_P(queued_writer_end_test, a_completed_flush_does_not_see_a_later_error) {
    script peer;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}};
        EXPECT_TRUE(writer.enqueue("a"));
        auto done = writer.flush();
        co_await until([&] { return writer.queued_bytes() == 0; });
        peer.error = std::make_error_code(std::errc::broken_pipe);
        EXPECT_TRUE(writer.enqueue("b"));
        EXPECT_EQ(error_of(co_await writer.flush()), std::errc::broken_pipe);
        EXPECT_TRUE(co_await std::move(done));
    });
}

TEST_P(queued_writer_end_test, a_closed_peer_is_reported) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        theirs.reset();
        result<> flushed;
        while (flushed) {
            if (!writer.enqueue("x")) break;
            flushed = co_await writer.flush();
        }
        EXPECT_TRUE(flushed.error() == std::errc::connection_reset ||
                    flushed.error() == std::errc::broken_pipe);
        EXPECT_EQ(error_of(writer.enqueue("x")), flushed.error());
    });
}

TEST_P(queued_writer_end_test, a_closed_stream_is_reported) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        writer.stream().close();
        EXPECT_TRUE(writer.enqueue("x")); // the writer notices at the write
        EXPECT_EQ(error_of(co_await writer.flush()), std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(writer.enqueue("x")), std::errc::bad_file_descriptor);
    });
}

TEST_P(queued_writer_end_test, closing_the_stream_ends_a_write_in_flight) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        EXPECT_TRUE(writer.enqueue(std::string(4'000'000, 'x')));
        co_await turns(5);
        writer.stream().close();
        EXPECT_EQ(error_of(co_await writer.flush()), std::errc::operation_canceled);
    });
}

std::vector<std::string> unhandled;

TEST_P(queued_writer_end_test, an_exception_of_the_stream_is_reported_and_ends_all_waits) {
    remake_loop({.on_unhandled = [](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(std::move(thrown));
        } catch (const std::exception& caught) {
            unhandled.emplace_back(caught.what());
        }
    }});
    unhandled.clear();
    script peer{.throws = true};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}};
        EXPECT_TRUE(writer.enqueue("x"));
        EXPECT_EQ(error_of(co_await writer.flush()), std::errc::io_error);
        EXPECT_EQ(error_of(writer.enqueue("x")), std::errc::io_error);
    });
    EXPECT_THAT(unhandled, ElementsAre("a stream that throws"));
}

// --- the end

TEST_P(queued_writer_end_test, graceful_shutdown_sends_everything_and_then_the_end_of_the_stream) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    const std::string sent = noise(300'000);
    std::string got;
    std::thread peer{[&] {
        got = theirs.receive(sent.size());
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
        theirs.send("answer");
    }};
    run([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        EXPECT_TRUE(writer.enqueue(sent));
        EXPECT_TRUE(co_await writer.graceful_shutdown());
        EXPECT_EQ(writer.queued_bytes(), 0U);
        EXPECT_EQ(error_of(writer.enqueue("x")), std::errc::broken_pipe);
        EXPECT_EQ(error_of(co_await writer.writable()), std::errc::broken_pipe);
        EXPECT_TRUE(co_await writer.flush());
        EXPECT_TRUE(co_await writer.graceful_shutdown());
        std::string answer(6, '\0'); // reading continues
        EXPECT_TRUE(co_await async_read_exact(writer.stream(), answer));
        EXPECT_EQ(answer, "answer");
    });
    peer.join();
    EXPECT_TRUE(got == sent);
}

TEST_P(queued_writer_end_test, graceful_shutdown_of_a_writer_that_never_wrote) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        EXPECT_TRUE(co_await writer.graceful_shutdown());
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
}

TEST_P(queued_writer_end_test, a_stopped_graceful_shutdown_continues_without_its_waiter) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}};
        EXPECT_TRUE(writer.enqueue("rest"));
        EXPECT_EQ(error_of(co_await with_timeout(writer.graceful_shutdown(), 1ms)),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(writer.enqueue("x")), std::errc::broken_pipe);
        EXPECT_FALSE(peer.half_closed);
        peer.make_room(100);
        auto first =
            spawn([&]() -> task<result<>> { co_return co_await writer.graceful_shutdown(); });
        EXPECT_TRUE(co_await writer.graceful_shutdown());
        EXPECT_TRUE(co_await first);
        EXPECT_EQ(peer.written, "rest");
        EXPECT_TRUE(peer.half_closed);
    });
}

TEST_P(queued_writer_end_test, a_graceful_shutdown_wakes_waiting_writers) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}, small_marks};
        EXPECT_TRUE(writer.enqueue("0123456789"));
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await writer.writable(); });
        co_await turns(2);
        auto ending =
            spawn([&]() -> task<result<>> { co_return co_await writer.graceful_shutdown(); });
        EXPECT_EQ(error_of(co_await waiting), std::errc::broken_pipe);
        peer.make_room(100);
        EXPECT_TRUE(co_await ending);
    });
}

TEST_P(queued_writer_end_test, a_destroyed_writer_closes_its_stream_and_drops_the_rest) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        std::optional<queued_writer<tcp_stream>> writer{std::in_place, std::move(ours)};
        for (int count = 0; count < 100; ++count)
            EXPECT_TRUE(writer->enqueue(std::string(40'000, 'x')));
        auto flushing = spawn([&]() -> task<result<>> { co_return co_await writer->flush(); });
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await writer->writable(); });
        auto ending =
            spawn([&]() -> task<result<>> { co_return co_await writer->graceful_shutdown(); });
        co_await turns(10); // a gathered write has moved a part and waits for room
        writer.reset();
        EXPECT_EQ(error_of(co_await flushing), std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await waiting), std::errc::broken_pipe);
        EXPECT_EQ(error_of(co_await ending), std::errc::operation_canceled);
        static_cast<void>(theirs.receive_to_the_end());
    });
}

// The writer must not close the stream that the reader still uses.
TEST_P(queued_writer_end_test, a_destroyed_writer_over_a_half_leaves_the_other_half_alone) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, std::size_t{5'000'000}}) {
        auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
        std::thread peer{[&] {
            EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
            theirs.send("answer");
        }};
        run([&]() -> task<> {
            auto [reads, writes] = split(std::move(ours));
            {
                queued_writer writer{std::move(writes)};
                EXPECT_TRUE(writer.enqueue(std::string(bytes, 'x')));
                co_await turns(5);
            }
            std::string answer(6, '\0');
            EXPECT_TRUE(co_await async_read_exact(reads, answer));
            EXPECT_EQ(answer, "answer");
        });
        peer.join();
    }
}

TEST_P(queued_writer_end_test, a_writer_may_be_destroyed_at_any_stage) {
    for (int stage = 0; stage < 8; ++stage) {
        script peer{.room = stage < 4 ? std::size_t{0} : std::size_t{1} << 30U};
        run([&]() -> task<> {
            std::optional<queued_writer<rich_stream>> writer{std::in_place, rich_stream{peer}};
            if (stage % 4 > 0) {
                EXPECT_TRUE(writer->enqueue("x"));
            }
            co_await turns(stage % 4 - 1);
            writer.reset();
            EXPECT_TRUE(peer.closed || peer.alive == 0);
        });
        EXPECT_EQ(peer.alive, 0);
    }
}

TEST_P(queued_writer_end_test, a_writer_destroyed_when_its_write_has_just_succeeded_is_freed) {
    // The sending task must not wait for a handle that is gone, or the stream and two frames leak.
    for (const std::size_t room : {1U, 2U, 100U}) {
        script peer{.room = 0};
        run([&]() -> task<> {
            std::optional<queued_writer<rich_stream>> writer{std::in_place, rich_stream{peer}};
            EXPECT_TRUE(writer->enqueue("xy"));
            co_await turns(3);
            peer.make_room(room);
            writer.reset();
        });
        EXPECT_EQ(peer.alive, 0) << room;
        EXPECT_EQ(peer.written.size(), std::min<std::size_t>(room, 2));
    }
}

TEST_P(queued_writer_end_test,
       a_writer_over_a_socket_destroyed_with_a_write_on_the_ready_list_is_freed) {
    auto [ours, theirs] = connect_raw_local({.ours = 4096, .theirs = 4096});
    const std::string sent = noise(100'000);
    run([&]() -> task<> {
        std::optional<queued_writer<local_stream>> writer{std::in_place, std::move(ours)};
        EXPECT_TRUE(writer->enqueue(sent));
        co_await turns(3);
        theirs.receive(4096); // the kernel has room again: a write is about to end
        co_await yield();
        writer.reset();
    });
    static_cast<void>(theirs.receive_to_the_end());
}

TEST_P(queued_writer_end_test, a_stream_without_close_is_freed_after_a_stop) {
    script peer{.room = 0};
    run([&]() -> task<> {
        {
            queued_writer writer{plain_stream{peer}};
            EXPECT_TRUE(writer.enqueue("x"));
            co_await turns(3);
        }
        co_await until([&] { return peer.alive == 0; });
    });
}

TEST_P(queued_writer_end_test, a_woken_waiter_may_destroy_the_writer) {
    script peer{.room = 0};
    run([&]() -> task<> {
        std::optional<queued_writer<rich_stream>> writer{std::in_place, rich_stream{peer}};
        EXPECT_TRUE(writer->enqueue("x"));
        auto first = spawn([&]() -> task<> {
            static_cast<void>(co_await writer->flush());
            writer.reset();
        });
        auto second = spawn([&]() -> task<result<>> { co_return co_await writer->flush(); });
        co_await turns(3);
        peer.make_room(100);
        co_await first;
        EXPECT_TRUE(co_await second); // it has already ended
    });
}

TEST_P(queued_writer_end_test, a_writer_may_be_moved_while_it_sends_and_while_others_wait) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    const std::string sent = noise(500'000);
    run([&]() -> task<> {
        std::string got;
        queued_writer first{std::move(ours)};
        EXPECT_TRUE(first.enqueue(sent));
        auto flushing = spawn(
            [](auto what) -> task<result<>> { co_return co_await std::move(what); }, first.flush());
        co_await turns(5);
        queued_writer second{std::move(first)};
        std::thread peer{[&] { got = theirs.receive(sent.size()); }};
        EXPECT_TRUE(co_await flushing);
        peer.join();
        EXPECT_TRUE(got == sent);
        auto [other, unused] = connect_raw();
        second = queued_writer{std::move(other)}; // closes its previous stream
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
}

// --- the end of the loop

TEST_P(queued_writer_end_test, the_end_of_the_loop_ends_the_sending) {
    for (int polls = 0; polls < 6; ++polls) {
        auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
        loop().spawn([](tcp_stream stream) -> task<> {
            queued_writer writer{std::move(stream)};
            EXPECT_TRUE(writer.enqueue(std::string(4'000'000, 'x')));
            EXPECT_EQ(error_of(co_await writer.flush()), std::errc::operation_canceled);
            EXPECT_EQ(error_of(co_await writer.graceful_shutdown()), std::errc::operation_canceled);
        }(std::move(ours)));
        for (int count = 0; count < polls; ++count)
            loop().poll();
        remake_loop();
    }
}

TEST_P(queued_writer_end_test, a_writer_that_outlives_its_loop_has_been_closed_by_it) {
    for (const bool parked : {false, true}) {
        auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
        std::optional<queued_writer<tcp_stream>> writer{std::in_place, std::move(ours)};
        loop().spawn([&]() -> task<> {
            EXPECT_TRUE(writer->enqueue(std::string(parked ? 10 : 4'000'000, 'x')));
            co_return;
        });
        for (int count = 0; count < 5; ++count)
            loop().poll();
        remake_loop();
        static_cast<void>(theirs.receive_to_the_end());
        run([&]() -> task<> {
            const auto outcome = writer->enqueue("x");
            EXPECT_EQ(error_of(outcome),
                      parked ? std::errc::bad_file_descriptor : std::errc::operation_canceled);
            // All bytes enqueued before have reached the kernel.
            EXPECT_EQ((co_await writer->flush()).has_value(), parked);
        });
    }
}

TEST_P(queued_writer_end_test, a_task_that_ignores_the_end_of_its_loop_cannot_enqueue_forever) {
    auto [ours, theirs] = connect_raw();
    loop().spawn([](tcp_stream stream) -> task<> {
        queued_writer writer{std::move(stream)};
        for (;;) {
            static_cast<void>(writer.enqueue("x"));
            static_cast<void>(co_await writer.flush());
            co_await yield();
        }
    }(std::move(ours)));
    run_a_little_and_destroy();
}

INSTANTIATE_TEST_SUITE_P(backends, queued_writer_end_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
