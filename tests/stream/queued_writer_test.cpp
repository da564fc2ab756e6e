#include <simplenet/stream/queued_writer.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/time/deadline.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
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
using testing::turns;
using testing::until;

/// What a scripted stream was told to do, and saw.
struct script {
    std::size_t piece = 1U << 30U; // it takes at most so much at a time
    std::size_t room = 1U << 30U;  // and waits when it has taken so much in all
    std::error_code error;         // of every write from here on
    bool throws = false;
    std::string written;
    std::vector<std::size_t> buffers; // of each write
    std::vector<const std::byte*> addresses;
    bool closed = false;
    bool half_closed = false;
    int alive = 0;

    void make_room(std::size_t bytes) { room = written.size() + bytes; }
};

/// A stream of somebody else's, one buffer at a time.
class plain_stream {
public:
    explicit plain_stream(script& of)
        : script_{&of} {
        ++of.alive;
    }
    plain_stream(plain_stream&& other) noexcept
        : script_{std::exchange(other.script_, nullptr)} {}
    plain_stream& operator=(plain_stream&&) = delete;
    ~plain_stream() {
        if (script_ != nullptr) --script_->alive;
    }

    task<result<std::size_t>> write_some(const_buffer from) {
        const std::vector<const_buffer> one{from};
        co_return co_await write(one);
    }

protected:
    task<result<std::size_t>> write(std::vector<const_buffer> from) {
        script& to = *script_;
        while (to.room <= to.written.size() && !to.error && !to.throws) {
            if (co_await this_task::stop_requested()) co_return fail(std::errc::operation_canceled);
            co_await yield();
        }
        if (to.throws) throw std::runtime_error{"a stream that throws"};
        if (to.error) co_return fail(to.error);
        to.buffers.push_back(from.size());
        std::size_t left = std::min(to.piece, to.room - to.written.size());
        std::size_t count = 0;
        for (const const_buffer& each : from) {
            const std::size_t size = std::min(left, each.size());
            if (size == 0) break;
            to.addresses.push_back(each.data());
            to.written.append(reinterpret_cast<const char*>(each.data()), size);
            left -= size;
            count += size;
        }
        co_return count;
    }

    script* script_;
};

class rich_stream : public plain_stream {
public:
    using plain_stream::plain_stream;

    task<result<std::size_t>> write_some(const_buffer from) {
        const std::vector<const_buffer> one{from};
        co_return co_await write(one);
    }
    task<result<std::size_t>> write_some(std::span<const const_buffer> from) {
        const std::vector<const_buffer> all{from.begin(), from.end()};
        co_return co_await write(all);
    }
    task<result<>> shutdown_write() {
        co_await yield();
        script_->half_closed = true;
        co_return result<>{};
    }
    void close() { script_->closed = true; }
};

static_assert(detail::vectored_writer<tcp_stream> && detail::vectored_writer<rich_stream>);
static_assert(async_writer<plain_stream> && !detail::vectored_writer<plain_stream>);
static_assert(detail::half_closable<tcp_stream> && !detail::half_closable<plain_stream>);
static_assert(!std::is_copy_constructible_v<queued_writer<tcp_stream>>);
static_assert(std::is_nothrow_move_constructible_v<queued_writer<tcp_stream>>);

constexpr watermarks small_marks{.low = 4, .high = 8, .limit = 16};

class queued_writer_test : public testing::backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp(); // the first loop may open what a process opens once
        destroy_loop();
        frames_ = detail::live_frames();
        descriptors_ = testing::open_descriptors();
        remake_loop();
    }
    void TearDown() override {
        destroy_loop();
        if (IsSkipped()) return;
        EXPECT_EQ(detail::live_frames(), frames_);
        EXPECT_EQ(testing::open_descriptors(), descriptors_);
    }

private:
    std::ptrdiff_t frames_ = 0;
    std::ptrdiff_t descriptors_ = 0;
};

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto* const at = reinterpret_cast<const std::byte*>(text.data());
    return {at, at + text.size()};
}

// --- sending
// --------------------------------------------------------------------------------------

TEST_P(queued_writer_test, what_is_enqueued_is_sent_without_anybody_waiting) {
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

TEST_P(queued_writer_test, bytes_of_every_kind_arrive_in_order_however_small_the_socket) {
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

TEST_P(queued_writer_test, everything_of_one_turn_goes_out_with_one_write) {
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

TEST_P(queued_writer_test, what_is_given_away_is_not_copied) {
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

TEST_P(queued_writer_test, what_is_kept_is_copied) {
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

TEST_P(queued_writer_test, little_that_is_given_away_is_gone_too) {
    script seen;
    run([&]() -> task<> {
        queued_writer writer{rich_stream{seen}};
        std::string text = "short";
        EXPECT_TRUE(writer.enqueue(std::move(text)));
        EXPECT_TRUE(text.empty()); // NOLINT(bugprone-use-after-move): this is the test
        std::vector<std::byte> roomy = bytes_of("roomy");
        roomy.reserve(10'000);
        EXPECT_TRUE(writer.enqueue(std::move(roomy)));
        EXPECT_TRUE(co_await writer.flush());
    });
    EXPECT_EQ(seen.written, "shortroomy");
}

TEST_P(queued_writer_test, nothing_is_a_thing_that_can_be_enqueued) {
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
// ------------------------------------------------------------------------------------

TEST_P(queued_writer_test, the_high_mark_holds_until_the_low_one) {
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

TEST_P(queued_writer_test, the_limit_refuses_and_takes_nothing) {
    script peer{.room = 0};
    run([&]() -> task<> {
        queued_writer writer{rich_stream{peer}, small_marks};
        EXPECT_TRUE(writer.enqueue("0123456789"));
        std::string text = "abcdefg";
        EXPECT_EQ(error_of(writer.enqueue(text)), errc::queue_full);
        EXPECT_EQ(error_of(writer.enqueue(std::move(text))), errc::queue_full);
        EXPECT_EQ(text, "abcdefg"); // NOLINT(bugprone-use-after-move): this is the test
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
// ----------------------------------------------------------------------------------------

TEST_P(queued_writer_test, flush_waits_for_what_was_enqueued_before_it_and_no_more) {
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

TEST_P(queued_writer_test, a_stopped_scope_may_enqueue_and_not_wait) {
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

// --- errors
// ---------------------------------------------------------------------------------------

TEST_P(queued_writer_test, a_write_error_reaches_whoever_waits_and_everybody_later) {
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

TEST_P(queued_writer_test, a_flush_that_was_done_does_not_see_a_later_error) {
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

TEST_P(queued_writer_test, a_peer_that_is_gone_is_reported) {
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

TEST_P(queued_writer_test, a_stream_that_was_closed_is_reported) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        writer.stream().close();
        EXPECT_TRUE(writer.enqueue("x")); // the writer learns it from the write
        EXPECT_EQ(error_of(co_await writer.flush()), std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(writer.enqueue("x")), std::errc::bad_file_descriptor);
    });
}

TEST_P(queued_writer_test, closing_the_stream_ends_a_write_in_flight) {
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

TEST_P(queued_writer_test, a_stream_that_throws_is_not_swallowed_and_nobody_hangs) {
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
// --------------------------------------------------------------------------------------

TEST_P(queued_writer_test, graceful_shutdown_sends_all_and_then_the_end_of_the_stream) {
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
        std::string answer(6, '\0'); // reading goes on
        EXPECT_TRUE(co_await async_read_exact(writer.stream(), answer));
        EXPECT_EQ(answer, "answer");
    });
    peer.join();
    EXPECT_TRUE(got == sent);
}

TEST_P(queued_writer_test, graceful_shutdown_of_a_writer_that_never_wrote) {
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        queued_writer writer{std::move(ours)};
        EXPECT_TRUE(co_await writer.graceful_shutdown());
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
}

TEST_P(queued_writer_test, a_stopped_graceful_shutdown_goes_on_without_its_waiter) {
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

TEST_P(queued_writer_test, a_graceful_shutdown_wakes_who_waits_to_write) {
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

TEST_P(queued_writer_test, a_destroyed_writer_closes_its_stream_and_drops_the_rest) {
    auto [ours, theirs] = connect_raw({.ours = 4096, .theirs = 4096});
    run([&]() -> task<> {
        std::optional<queued_writer<tcp_stream>> writer{std::in_place, std::move(ours)};
        for (int count = 0; count < 100; ++count)
            EXPECT_TRUE(writer->enqueue(std::string(40'000, 'x')));
        auto flushing = spawn([&]() -> task<result<>> { co_return co_await writer->flush(); });
        auto waiting = spawn([&]() -> task<result<>> { co_return co_await writer->writable(); });
        auto ending =
            spawn([&]() -> task<result<>> { co_return co_await writer->graceful_shutdown(); });
        co_await turns(10); // a gathered write has moved some and waits for room
        writer.reset();
        EXPECT_EQ(error_of(co_await flushing), std::errc::operation_canceled);
        EXPECT_EQ(error_of(co_await waiting), std::errc::broken_pipe);
        EXPECT_EQ(error_of(co_await ending), std::errc::operation_canceled);
        static_cast<void>(theirs.receive_to_the_end());
    });
}

// It used to close the whole stream under the reader's feet.
TEST_P(queued_writer_test, a_destroyed_writer_over_a_half_leaves_the_other_half_alone) {
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

TEST_P(queued_writer_test, a_writer_may_be_destroyed_at_any_stage) {
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

TEST_P(queued_writer_test, a_writer_destroyed_when_its_write_has_just_succeeded_is_freed) {
    // It parked, for a handle that was gone: the stream and two frames were never freed.
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

TEST_P(queued_writer_test,
       a_writer_over_a_socket_destroyed_with_a_write_on_the_ready_list_is_freed) {
    auto [ours, theirs] = connect_raw_local({.ours = 4096, .theirs = 4096});
    const std::string sent = noise(100'000);
    run([&]() -> task<> {
        std::optional<queued_writer<local_stream>> writer{std::in_place, std::move(ours)};
        EXPECT_TRUE(writer->enqueue(sent));
        co_await turns(3);
        theirs.receive(4096); // now the kernel takes more: the end of a write is on its way
        co_await yield();
        writer.reset();
    });
    static_cast<void>(theirs.receive_to_the_end());
}

TEST_P(queued_writer_test, a_stream_without_close_is_let_go_by_a_stop) {
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

TEST_P(queued_writer_test, whoever_a_writer_woke_may_destroy_it) {
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
        EXPECT_TRUE(co_await second); // it was over already
    });
}

TEST_P(queued_writer_test, a_writer_may_be_moved_while_it_sends_and_while_others_wait) {
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
        second = queued_writer{std::move(other)}; // closes the one it had
        EXPECT_EQ(theirs.receive_to_the_end(), errc::end_of_stream);
    });
}

// --- the end of the loop
// --------------------------------------------------------------------------

TEST_P(queued_writer_test, a_loop_that_ends_ends_the_sending) {
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

TEST_P(queued_writer_test, a_writer_that_outlives_its_loop_has_been_closed_by_it) {
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
            // All that was enqueued before did reach the kernel.
            EXPECT_EQ((co_await writer->flush()).has_value(), parked);
        });
    }
}

TEST_P(queued_writer_test, a_task_that_ignores_its_end_enqueues_for_a_while_at_most) {
    auto [ours, theirs] = connect_raw();
    loop().spawn([](tcp_stream stream) -> task<> {
        queued_writer writer{std::move(stream)};
        for (;;) {
            static_cast<void>(writer.enqueue("x"));
            static_cast<void>(co_await writer.flush());
            co_await yield();
        }
    }(std::move(ours)));
    for (int count = 0; count < 5; ++count)
        loop().poll();
    destroy_loop();
}

// --- misuse
// ---------------------------------------------------------------------------------------

class queued_writer_death_test : public testing::backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        GTEST_FLAG_SET(death_test_style, "threadsafe");
    }
};

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
    destroy_loop(); // while what it works with is there
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
