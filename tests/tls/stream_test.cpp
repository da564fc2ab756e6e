#include <simplenet/tls/stream.hpp>

#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"

#include <simplenet/coro/detail/frame_allocator.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/queued_writer.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>
#include <simplenet/tls/errc.hpp>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::client;
using testing::client_with;
using testing::connected;
using testing::exchange;
using testing::memory_stream;
using testing::pattern;
using testing::read_all;
using testing::send_and_end;
using testing::server_with;
using testing::shake_hands;
using testing::tls_ends;

static_assert(async_reader<memory_stream> && async_writer<memory_stream>);
static_assert(ready_reader<memory_stream> && ready_writer<memory_stream>);
static_assert(detail::vectored_writer<memory_stream>);
static_assert(detail::half_closable<memory_stream>);
static_assert(!std::is_copy_constructible_v<memory_stream>);
static_assert(std::is_nothrow_move_constructible_v<memory_stream>);

class tls_stream_test : public testing::backend_test {};

// --- transfers -----------------------------------------------------------------------------------

TEST_P(tls_stream_test, both_directions_at_once_through_buffers_of_every_size) {
    for (const std::size_t capacity : {1U, 5U, 100U, 20'000U, 1'000'000U}) {
        run([&]() -> task<> {
            auto ends = connected(server_with(), client(), {.server_name = "localhost"}, capacity);
            co_await exchange(ends.server, ends.client, pattern(capacity < 100 ? 3000 : 300'000));
        });
    }
}

TEST_P(tls_stream_test, both_directions_at_once_over_tcp) {
    run([&]() -> task<> {
        auto [one, other] = co_await testing::connected_over_tcp(server_with(), client());
        co_await exchange(one, other, pattern(2'000'000));
    });
}

TEST_P(tls_stream_test, a_transport_of_unknown_type) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        tls::stream<any_stream> one{any_stream{std::move(left)}, server_with()};
        tls::stream<any_stream> other{
            any_stream{std::move(right)}, client(), {.server_name = "localhost"}};
        co_await exchange(one, other, pattern(100'000));
    });
}

TEST_P(tls_stream_test, a_stream_of_unknown_type_over_tls) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        any_stream one{std::move(ends.server)};
        any_stream other{std::move(ends.client)};
        co_await exchange(one, other, pattern(100'000));
    });
}

TEST_P(tls_stream_test, tls_inside_tls) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        tls::stream<memory_stream> one{std::move(ends.server), server_with()};
        tls::stream<memory_stream> other{
            std::move(ends.client), client(), {.server_name = "localhost"}};
        co_await exchange(one, other, pattern(100'000));
    });
}

TEST_P(tls_stream_test, read_some_returns_all_records_that_have_arrived_and_fit) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        for (const std::string_view each : {"one ", "two ", "three "})
            EXPECT_TRUE(co_await async_write_all(ends.client, each));
        std::array<char, 8> small{};
        EXPECT_EQ((co_await ends.server.read_some(small)).value_or(0), 8U);
        EXPECT_EQ(std::string_view(small.data(), 8), "one two ");
        EXPECT_EQ((co_await ends.server.read_some(small)).value_or(0), 6U);
        EXPECT_EQ(std::string_view(small.data(), 6), "three ");
    });
}

/// How many reads a transfer of 4 MiB takes.
task<std::size_t> reads_of_a_long_transfer(std::chrono::milliseconds idle_limit) {
    auto ends = co_await testing::connected_over_tcp(server_with(), client());
    ends.server.set_idle_timeout(idle_limit);
    const std::string text = pattern(std::size_t{4} << 20U);
    auto sending = spawn(send_and_end(ends.client, text));
    std::string got;
    std::string buffer(100'000, '\0');
    std::size_t reads = 0;
    for (;; ++reads) {
        const auto count = co_await ends.server.read_some(mutable_buffer{buffer});
        if (!count) break;
        got.append(buffer, 0, *count);
    }
    EXPECT_TRUE(co_await sending);
    EXPECT_TRUE(got == text);
    co_return reads;
}

TEST_P(tls_stream_test, a_long_transfer_over_tcp_is_read_several_records_at_a_time) {
    run([&]() -> task<> {
        for (const auto idle_limit : {0ms, 3'600'000ms}) {
            const std::size_t reads = co_await reads_of_a_long_transfer(idle_limit);
            // io_uring receives ahead, into buffers of the loop's pool, which are shorter than a
            // record.
            if (GetParam() == backend::epoll) {
                EXPECT_LT(reads, 128U);
            }
        }
    });
}

TEST_P(tls_stream_test, small_buffers_share_a_record_and_large_ones_fill_records) {
    run([&]() -> task<> {
        const std::string large = pattern(40'000);
        const std::array<const_buffer, 5> parts{const_buffer{"head"}, const_buffer{""},
                                                const_buffer{large}, const_buffer{"tail"},
                                                const_buffer{"!"}};
        auto ends = connected(server_with(), client(), {.server_name = "localhost"}, 1'000'000);
        const auto both = co_await when_all(ends.server.handshake(), ends.client.handshake());
        EXPECT_TRUE(std::get<0>(both) && std::get<1>(both));

        const std::span<const const_buffer> all{parts};
        EXPECT_EQ((co_await ends.client.write_some(all)).value_or(0), 40'009U);

        std::vector<char> ciphertext(100'000);
        const auto size = co_await ends.server.transport().read_some(mutable_buffer{ciphertext});
        // Three records of at most 16 KiB, each with 22 bytes around the data (RFC 8446, 5.2).
        EXPECT_EQ(size.value_or(0), 40'009U + std::size_t{3} * 22);
    });
}

TEST_P(tls_stream_test, an_empty_write_succeeds_and_sends_nothing) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto both = co_await when_all(ends.server.handshake(), ends.client.handshake());
        EXPECT_TRUE(std::get<0>(both) && std::get<1>(both));
        EXPECT_EQ((co_await ends.client.write_some("")).value_or(1), 0U);
        EXPECT_TRUE(co_await async_write_all(ends.client, "x"));
        std::array<char, 8> buffer{};
        EXPECT_EQ((co_await ends.server.read_some(buffer)).value_or(0), 1U);
    });
}

TEST_P(tls_stream_test, works_with_queued_writer_and_buffered_reader) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        queued_writer writer{std::move(ends.client)};
        buffered_reader reader{std::move(ends.server)};
        EXPECT_TRUE(writer.enqueue("first\r\nsec"));
        EXPECT_TRUE(writer.enqueue("ond\n"));
        auto ending =
            spawn([&]() -> task<result<>> { co_return co_await writer.graceful_shutdown(); });
        EXPECT_EQ((co_await reader.read_line(100)).value_or(""), "first");
        EXPECT_EQ((co_await reader.read_line(100)).value_or(""), "second");
        EXPECT_EQ((co_await reader.read_line(100)).error(), errc::end_of_stream);
        EXPECT_TRUE(co_await ending);
    });
}

// --- what was agreed on --------------------------------------------------------------------------

TEST_P(tls_stream_test, info_tells_what_was_agreed_on) {
    const std::array<std::string_view, 2> offered{"h2", "http/1.1"};
    const std::array<std::string_view, 1> spoken{"http/1.1"};
    run([&]() -> task<> {
        auto ends = connected(
            server_with("server", [&](tls::server_config& config) { config.alpn = spoken; }),
            client_with([&](tls::client_config& config) { config.alpn = offered; }));
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);

        const tls::connection_info& at_client = ends.client.info();
        EXPECT_EQ(at_client.version, tls::version::tls_1_3);
        EXPECT_EQ(at_client.cipher, "TLS_AES_256_GCM_SHA384");
        EXPECT_EQ(at_client.alpn, "http/1.1");
        EXPECT_EQ(at_client.server_name, "localhost");
        EXPECT_FALSE(at_client.resumed);
        EXPECT_EQ(at_client.peer_certificate->subject(), "CN=server");
        EXPECT_FALSE(at_client.verification);

        EXPECT_EQ(ends.server.info().alpn, "http/1.1");
        EXPECT_EQ(ends.server.info().server_name, "localhost");
        EXPECT_FALSE(ends.server.info().peer_certificate);
    });
}

TEST_P(tls_stream_test, nothing_in_common_has_its_errors) {
    const std::array<std::string_view, 1> ours{"h2"};
    const std::array<std::string_view, 1> theirs{"http/1.1"};
    run([&]() -> task<> {
        auto protocols = connected(
            server_with("server", [&](tls::server_config& config) { config.alpn = ours; }),
            client_with([&](tls::client_config& config) { config.alpn = theirs; }));
        auto errors = co_await shake_hands(protocols);
        EXPECT_EQ(errors.server, tls::errc::no_application_protocol);
        EXPECT_EQ(errors.client, tls::errc::no_application_protocol);
        EXPECT_EQ(errors.client, std::errc::protocol_error);

        auto groups = connected(
            server_with("server", [](tls::server_config& config) { config.groups = "P-384"; }),
            client());
        errors = co_await shake_hands(groups);
        EXPECT_EQ(errors.server, tls::errc::no_common_cipher);
        EXPECT_EQ(errors.client, tls::errc::peer_alert);
    });
}

// --- ends ----------------------------------------------------------------------------------------

TEST_P(tls_stream_test, an_end_without_close_notify_is_truncation) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        EXPECT_TRUE(co_await async_write_all(ends.client, "cut"));
        EXPECT_TRUE(co_await async_shutdown_write(ends.client.transport()));

        std::error_code end;
        EXPECT_EQ(co_await read_all(ends.server, end), "cut");
        EXPECT_EQ(end, tls::errc::truncated);
        EXPECT_NE(end, std::error_code{errc::end_of_stream});
        std::array<char, 8> buffer{};
        EXPECT_EQ((co_await ends.server.read_some(buffer)).error(), tls::errc::truncated);
    });
}

TEST_P(tls_stream_test, close_sends_a_close_notify) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        ends.client.close();
        std::error_code end;
        EXPECT_EQ(co_await read_all(ends.server, end), "");
        EXPECT_EQ(end, errc::end_of_stream);
        EXPECT_EQ((co_await ends.client.write_some("x")).error(), std::errc::bad_file_descriptor);
    });
}

TEST_P(tls_stream_test, reading_goes_on_after_shutdown_write) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        EXPECT_TRUE(co_await [](tls_ends& of) -> task<bool> {
            const auto both = co_await when_all(of.server.handshake(), of.client.shutdown_write());
            co_return std::get<0>(both) && std::get<1>(both);
        }(ends));
        EXPECT_EQ((co_await ends.client.write_some("x")).error(), std::errc::broken_pipe);
        EXPECT_TRUE(co_await ends.client.shutdown_write()); // again

        std::error_code end;
        EXPECT_EQ(co_await read_all(ends.server, end), "");
        EXPECT_EQ(end, errc::end_of_stream);
        EXPECT_TRUE(co_await send_and_end(ends.server, "answer"));
        EXPECT_EQ(co_await read_all(ends.client, end), "answer");
        EXPECT_EQ(end, errc::end_of_stream);
    });
}

TEST_P(tls_stream_test, async_close_exchanges_close_notify) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        EXPECT_TRUE(co_await async_write_all(ends.server, "dropped"));
        const auto [closed, answered] =
            co_await when_all(ends.client.async_close(10s), ends.server.async_close(10s));
        EXPECT_TRUE(closed);
        EXPECT_TRUE(answered);
    });
}

TEST_P(tls_stream_test, async_close_does_not_wait_longer_than_its_grace) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        EXPECT_EQ((co_await ends.client.async_close(5ms)).error(), errc::deadline_exceeded);
        EXPECT_EQ((co_await ends.client.write_some("x")).error(), std::errc::bad_file_descriptor);
    });
}

// --- stops and deadlines -------------------------------------------------------------------------

TEST_P(tls_stream_test, a_stopped_handshake_continues_where_it_was) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        for (int each = 0; each < 3; ++each) {
            EXPECT_EQ((co_await with_timeout(ends.client.handshake(), 1ms)).error(),
                      errc::deadline_exceeded);
        }
        co_await exchange(ends.server, ends.client, pattern(1000));
    });
}

TEST_P(tls_stream_test, a_write_that_does_not_wait_leaves_a_handshake_alone) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client(), {.server_name = "localhost"}, 50);
        auto shaking = spawn([](memory_stream& end) -> task<result<>> {
            co_return co_await end.handshake();
        }(ends.client));
        co_await testing::turns(3); // it waits for room
        EXPECT_EQ(ends.client.try_write_some("x").error(), std::errc::operation_would_block);
        EXPECT_TRUE(co_await ends.server.handshake());
        EXPECT_TRUE(co_await shaking);
    });
}

TEST_P(tls_stream_test, a_stopped_read_loses_nothing) {
    run([&]() -> task<> {
        // Room for a part of a record, so that most reads end in the middle of one.
        auto ends = connected(server_with(), client(), {.server_name = "localhost"}, 7);
        const std::string text = pattern(2000);
        auto sending = spawn(send_and_end(ends.client, text));
        std::string got;
        std::array<char, 64> buffer{};
        for (;;) {
            const auto count = co_await with_timeout(ends.server.read_some(buffer), 0ms);
            if (count) got.append(buffer.data(), *count);
            if (!count && count.error() != errc::deadline_exceeded) {
                EXPECT_EQ(count.error(), errc::end_of_stream);
                break;
            }
        }
        EXPECT_TRUE(co_await sending);
        EXPECT_TRUE(got == text);
    });
}

// It used to report truncation: the kernel tells of a reset once.
TEST_P(tls_stream_test, the_read_after_readable_reports_a_reset) {
    run([&]() -> task<> {
        for (const bool waits : {true, false}) {
            auto ends = co_await testing::connected_over_tcp(server_with(), client());
            const auto both = co_await when_all(ends.server.handshake(), ends.client.handshake());
            EXPECT_TRUE(std::get<0>(both) && std::get<1>(both));
            EXPECT_TRUE(ends.server.transport().set_linger(0s));
            ends.server.transport().close();
            EXPECT_TRUE(co_await ends.client.readable());
            EXPECT_TRUE(co_await ends.client.readable());
            std::array<char, 8> buffer{};
            std::error_code error;
            if (waits) {
                error = error_of(co_await ends.client.read_some(buffer));
            } else {
                error = error_of(ends.client.try_receive());
            }
            EXPECT_EQ(error, std::errc::connection_reset) << error.message();
        }
    });
}

TEST_P(tls_stream_test, a_write_that_does_not_wait_leaves_errors_of_the_transport_to_the_next) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        EXPECT_TRUE(co_await ends.server.write_some("w")); // takes the tickets along
        ends.client.transport().close();
        EXPECT_EQ(ends.server.try_write_some("x").value_or(0), 1U);
        EXPECT_EQ(ends.server.try_write_some("y").error(), std::errc::operation_would_block);
        EXPECT_EQ((co_await ends.server.write_some("y")).error(), std::errc::broken_pipe);
    });
}

TEST_P(tls_stream_test, the_rest_of_a_stopped_write_leaves_first) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client(), {.server_name = "localhost"}, 1000);
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);

        const std::string text = pattern(5000);
        EXPECT_EQ((co_await with_timeout(ends.client.write_some(text), 1ms)).value_or(0), 5000U);
        EXPECT_EQ((co_await with_timeout(ends.client.write_some("more"), 1ms)).error(),
                  errc::deadline_exceeded); // nothing was sealed

        std::error_code end;
        const auto [sent, got] =
            co_await when_all(send_and_end(ends.client, "end"), read_all(ends.server, end));
        EXPECT_TRUE(sent);
        EXPECT_TRUE(got == text + "end");
        EXPECT_EQ(end, errc::end_of_stream);
    });
}

TEST_P(tls_stream_test, an_operation_of_a_stopped_task_is_refused_although_data_is_there) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        EXPECT_TRUE(co_await async_write_all(ends.client, "there"));
        auto stopped = spawn([&]() -> task<> {
            co_await testing::turns(3);
            std::array<char, 8> buffer{};
            EXPECT_EQ((co_await ends.server.read_some(buffer)).error(),
                      std::errc::operation_canceled);
            EXPECT_EQ((co_await ends.server.write_some("x")).error(),
                      std::errc::operation_canceled);
        });
        stopped.request_stop();
        co_await stopped;
        std::array<char, 8> buffer{};
        EXPECT_EQ((co_await ends.server.read_some(buffer)).value_or(0), 5U);
    });
}

TEST_P(tls_stream_test, destroying_it_ends_operations_in_flight) {
    run([&]() -> task<> {
        auto ends = std::make_unique<tls_ends>(connected(server_with(), client()));
        auto reading = spawn([](memory_stream& from) -> task<std::error_code> {
            std::array<char, 8> buffer{};
            const auto count = co_await from.read_some(buffer);
            co_return count ? std::error_code{} : count.error();
        }(ends->server));
        co_await testing::turns(3);
        ends.reset();
        EXPECT_EQ(co_await reading, std::errc::operation_canceled);
    });
}

/// Both ends have read and written.
task<> exchange_words(testing::tls_tcp_ends& ends) {
    std::array<char, 8> there{};
    std::array<char, 8> back{};
    const auto [asked, answered, got, heard] =
        co_await when_all(ends.client.write_some("word"), ends.server.write_some("word"),
                          ends.server.read_some(there), ends.client.read_some(back));
    EXPECT_TRUE(asked && answered && got && heard);
}

// The close_notify used to need the running loop of the stream, without which the program ended.
TEST_P(tls_stream_test, it_may_be_destroyed_while_its_loop_does_not_run) {
    std::vector<testing::tls_tcp_ends> all;
    run([&]() -> task<> {
        for (int each = 0; each < 3; ++each) {
            auto made = co_await testing::connected_over_tcp(server_with(), client());
            const auto both = co_await when_all(made.server.handshake(), made.client.handshake());
            EXPECT_TRUE(std::get<0>(both) && std::get<1>(both));
            if (each != 2) co_await exchange_words(made);
            all.push_back(std::move(made));
        }
    });

    auto other = or_throw(event_loop::create({.backend = GetParam()}));
    const auto drop = [&]() -> task<> {
        all.pop_back(); // has only shaken hands
        all.pop_back();
        co_return;
    };
    other.spawn(drop);
    EXPECT_TRUE(other.run_for(5s));
    {
        const auto gone = std::move(all.back().server);
    }
    destroy_loop();
    all.clear();
}

TEST_P(tls_stream_test, the_idle_limit_counts_application_data_only) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        ends.server.set_idle_timeout(20ms);
        std::array<char, 8> buffer{};
        EXPECT_EQ((co_await ends.server.read_some(buffer)).error(), errc::deadline_exceeded);
        EXPECT_TRUE(co_await async_write_all(ends.client, "x"));
        EXPECT_EQ((co_await ends.server.read_some(buffer)).value_or(0), 1U);
    });
}

TEST_P(tls_stream_test, an_idle_limit_without_end_is_none) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        ends.server.set_idle_timeout(std::chrono::hours::max());
        ends.client.set_idle_timeout(std::chrono::nanoseconds::max());
        co_await exchange(ends.server, ends.client, pattern(1000));
    });
}

TEST_P(tls_stream_test, an_operation_in_flight_goes_on_without_its_idle_limit) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        ends.server.set_idle_timeout(5ms);
        auto reading = spawn([](memory_stream& from) -> task<result<std::size_t>> {
            std::array<char, 8> buffer{};
            co_return co_await from.read_some(buffer);
        }(ends.server));
        co_await testing::turns(3);
        ends.server.set_idle_timeout(0ms);
        EXPECT_TRUE(co_await async_sleep(10ms));
        EXPECT_TRUE(co_await async_write_all(ends.client, "x"));
        EXPECT_EQ((co_await reading).value_or(0), 1U);
    });
}

TEST_P(tls_stream_test, a_write_over_tcp_leaves_no_buffer_behind) {
    if (!detail::recycles_frames) GTEST_SKIP() << "AddressSanitizer builds do not recycle";
    run([&]() -> task<> {
        auto ends = co_await testing::connected_over_tcp(server_with(), client());
        const auto both = co_await when_all(ends.server.handshake(), ends.client.handshake());
        EXPECT_TRUE(std::get<0>(both) && std::get<1>(both));
        // The cache lends first what was given back last. Without a cache, as under
        // AddressSanitizer, the address says nothing.
        const std::byte* const before = scratch::borrow(1024).data();
        EXPECT_EQ((co_await ends.client.write_some("x")).value_or(0), 1U);
        EXPECT_EQ(scratch::borrow(1024).data(), before);
    });
}

// --- peers that do not speak TLS -----------------------------------------------------------------

TEST_P(tls_stream_test, something_else_than_tls_is_named) {
    for (const char* text : {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n"}) {
        run([&]() -> task<> {
            auto [left, right] = duplex();
            memory_stream server{std::move(left), server_with()};
            EXPECT_TRUE(co_await send_and_end(right, text));
            EXPECT_EQ((co_await server.handshake()).error(), tls::errc::not_tls) << text;
            EXPECT_FALSE(server.error_detail().empty());
        });
    }
}

// Any two bytes used to decide it.
TEST_P(tls_stream_test, the_first_two_bytes_tell_tls_from_something_else) {
    run([&]() -> task<> {
        auto [left, right] = duplex();
        memory_stream server{std::move(left), server_with()};
        auto shaking = spawn([](memory_stream& end) -> task<result<>> {
            co_return co_await end.handshake();
        }(server));
        EXPECT_TRUE(co_await async_write_all(right, "\x16"));
        co_await testing::turns(3);
        EXPECT_TRUE(co_await async_write_all(right, "\x03\x01\xff\xff")); // too long a record
        EXPECT_EQ((co_await shaking).error(), tls::errc::record_invalid);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tls_stream_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
