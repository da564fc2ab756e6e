// Faults in every call, completion and allocation of streams.

#include "support/copy_by_splice.hpp"
#include "support/error_of.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::converse;
using testing::echo_by_read_some;
using testing::echo_by_receive;
using testing::fault_scenario;
using testing::make_connection;
using testing::noise;
using testing::read_all;

class stream_faults_test : public testing::fail_everywhere_test {};

constexpr std::string_view sentence = "one two three and the last";

class echoing_by_read_some : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        auto server = echo_by_read_some(std::move(ends.server));
        auto client = converse(std::move(ends.client), sentence, got_);
        co_await or_return(co_await gather(std::move(server), std::move(client)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(stream_faults_test, echo_by_read_some) {
    fail_everywhere<echoing_by_read_some>();
}

class echoing_by_receive : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        auto server = echo_by_receive(std::move(ends.server));
        auto client = converse(std::move(ends.client), sentence, got_);
        co_await or_return(co_await gather(std::move(server), std::move(client)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(stream_faults_test, echo_by_receive) {
    fail_everywhere<echoing_by_receive>();
}

/// Waits without taking, takes without waiting, and writes without waiting.
class echoing_without_waiting : public fault_scenario {
    static task<result<>> serve(tcp_stream peer) {
        while (true) {
            const result<> there = co_await peer.readable();
            if (!there) co_return there;
            const auto lease = peer.try_receive();
            if (!lease) {
                peer.close();
                co_return testing::ended(lease.error());
            }
            const result<std::size_t> count = peer.try_write_some(*lease);
            if (!count) co_return fail(count);
            const const_buffer all = *lease;
            const auto sent = co_await async_write_all(peer, all.subspan(*count));
            if (!sent) co_return fail(sent);
        }
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        auto server = serve(std::move(ends.server));
        auto client = converse(std::move(ends.client), sentence, got_);
        co_await or_return(co_await gather(std::move(server), std::move(client)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(stream_faults_test, echo_without_waiting) {
    fail_everywhere<echoing_without_waiting>();
}

TEST_P(stream_faults_test, echo_by_receive_with_two_buffers) {
    fail_everywhere<echoing_by_receive>({.receive_pool = 1});
}

/// More bytes than the kernel holds, so that both sides wait for each other.
class transferring : public fault_scenario {
protected:
    const std::string text_ = noise(60'000);

private:
    virtual task<transfer_result> write(tcp_stream& stream) {
        co_return co_await async_write_all(stream, text_);
    }
    task<result<>> send(tcp_stream stream) {
        const transfer_result sent = co_await write(stream);
        if (!sent) co_return fail(sent);
        co_return stream.shutdown_write();
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(ends.client.set_send_buffer(8192));
        co_await or_return(
            co_await gather(send(std::move(ends.client)), read_all(ends.server, got_)));
        co_return got_ == text_ ? "all of it" : "something else";
    }
    std::string got_;
};
TEST_P(stream_faults_test, transfer_that_waits) {
    fail_everywhere<transferring>();
}

/// The same as a vector of buffers.
class gathering_writes final : public transferring {
    task<transfer_result> write(tcp_stream& stream) override {
        const std::array<const_buffer, 3> parts{const_buffer{text_.data(), 10},
                                                const_buffer{text_.data() + 10, 20'000},
                                                const_buffer{text_.data() + 20'010, 39'990}};
        co_return co_await async_write_all(stream, std::span<const const_buffer>{parts});
    }
};
TEST_P(stream_faults_test, vectored_write) {
    fail_everywhere<gathering_writes>();
}

/// Large reads, for which io_uring stops receiving ahead, and a lease, for which it starts again.
class reading_large_pieces : public fault_scenario {
    static constexpr std::size_t piece = 30'000;
    static constexpr std::size_t rounds = 8;
    const std::string text_ = noise(rounds * piece);

    task<result<>> send(tcp_stream stream) {
        std::array<std::byte, 1> answer{};
        for (std::size_t at = 0; at < text_.size(); at += piece) {
            const const_buffer part{text_.data() + at, piece};
            const auto sent = co_await async_write_all(stream, part);
            if (!sent) co_return fail(sent);
            const auto heard = co_await async_read_exact(stream, answer);
            if (!heard) co_return fail(heard);
        }
        co_return stream.shutdown_write();
    }
    task<result<>> receive(tcp_stream& stream) {
        std::string buffer(piece, '\0');
        const mutable_buffer into{buffer};
        for (std::size_t round = 0; round < rounds; ++round) {
            const std::size_t all = got_.size() + piece;
            while (got_.size() < all) {
                const mutable_buffer rest = into.first(all - got_.size());
                if (round == 4) {
                    const auto lease = co_await stream.receive();
                    if (!lease) co_return fail(lease);
                    got_ += lease->text();
                } else if (round % 2 == 0) {
                    const auto count = co_await async_read_exact(stream, rest);
                    if (!count) co_return fail(count);
                    got_.append(buffer, 0, *count);
                } else {
                    const auto count = co_await stream.read_some(rest);
                    if (!count) co_return fail(count);
                    got_.append(buffer, 0, *count);
                }
            }
            const auto answered = co_await async_write_all(stream, "!");
            if (!answered) co_return fail(answered);
        }
        co_return co_await read_all(stream, got_);
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        auto receiving = [this](tcp_stream stream) -> task<result<>> {
            co_return co_await receive(stream);
        };
        co_await or_return(
            co_await gather(send(std::move(ends.client)), receiving(std::move(ends.server))));
        co_return got_ == text_ ? "all of it" : "something else";
    }
    std::string got_;
};
TEST_P(stream_faults_test, large_pieces) {
    fail_everywhere<reading_large_pieces>();
}

class reading_with_a_limit : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        std::array<std::byte, 16> buffer{};
        const auto nothing = co_await with_timeout(ends.server.read_some(buffer), 1ms);
        if (!nothing && nothing.error() != errc::deadline_exceeded) co_return fail(nothing);
        co_await or_return(co_await async_write_all(ends.client, "late"));
        const auto count =
            co_await or_return(co_await with_timeout(ends.server.read_some(buffer), 1h));
        co_return std::string{reinterpret_cast<const char*>(buffer.data()), count};
    }
};
TEST_P(stream_faults_test, read_with_timeout) {
    fail_everywhere<reading_with_a_limit>();
}

class idling : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        ends.server.set_idle_timeout(2ms);
        std::array<std::byte, 16> buffer{};
        const auto nothing = co_await ends.server.read_some(buffer);
        if (!nothing && nothing.error() != errc::deadline_exceeded) co_return fail(nothing);
        co_return nothing ? "something" : "nothing";
    }
};
TEST_P(stream_faults_test, idle_timeout) {
    fail_everywhere<idling>();
}

class closing_while_reading : public fault_scenario {
    static task<result<>> read_on(tcp_stream& stream) {
        std::array<std::byte, 16> buffer{};
        const auto count = co_await stream.read_some(buffer);
        if (!count && count.error() != std::errc::operation_canceled) co_return fail(count);
        co_return result<>{};
    }
    static task<result<>> close(tcp_stream& stream) {
        co_await yield();
        stream.close();
        co_await stream.closed();
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(co_await gather(read_on(ends.server), close(ends.server)));
        std::string got;
        co_await or_return(co_await read_all(ends.client, got));
        co_return "the end";
    }
};
TEST_P(stream_faults_test, close_in_flight) {
    fail_everywhere<closing_while_reading>();
}

/// A socket that leaves its loop with bytes received ahead, and comes back.
class releasing : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(co_await async_write_all(ends.client, "first second"));
        std::array<std::byte, 6> buffer{};
        co_await or_return(co_await async_read_exact(ends.server, buffer));
        auto parts = co_await or_return(co_await std::move(ends.server).release());
        got_.assign(reinterpret_cast<const char*>(parts.unread.data()), parts.unread.size());
        tcp_stream again{std::move(parts.socket)};
        co_await or_return(ends.client.shutdown_write());
        co_await or_return(co_await read_all(again, got_));
        co_return got_;
    }
    std::string got_;
};
TEST_P(stream_faults_test, release) {
    fail_everywhere<releasing>();
}

// With io_uring, bytes received ahead must not stay where the next socket would find them. Nor may
// the peer see an orderly end, as if all bytes had been read.
TEST_P(stream_faults_test, a_release_without_memory_resets_and_does_not_affect_the_next_socket) {
    auto loop = or_throw(event_loop::create({.backend = GetParam()}));
    auto go = [](std::size_t failing) -> task<bool> {
        auto ends = or_throw(co_await make_connection());
        std::array<char, 8> buffer{};
        EXPECT_TRUE(co_await async_write_all(ends.client, "old bytes"));
        EXPECT_EQ(
            co_await ends.server.read_some(std::as_writable_bytes(std::span{buffer}.first(1))), 1U);
        auto next = or_throw(co_await make_connection());
        auto left = or_throw(co_await std::move(next.server).release());
        bool failed = false;
        try {
            const testing::failing_allocations armed{failing, false};
            static_cast<void>(co_await std::move(ends.server).release());
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        if (failed && !ends.server.is_open()) { // with bytes unread
            const auto ended = co_await ends.client.read_some(buffer);
            EXPECT_EQ(error_of(ended), std::errc::connection_reset) << failing;
        }
        tcp_stream server{std::move(left.socket)};
        EXPECT_TRUE(co_await async_write_all(next.client, "new"));
        const auto count = co_await server.read_some(std::as_writable_bytes(std::span{buffer}));
        EXPECT_EQ(std::string_view(buffer.data(), count.value_or(0)), "new");
        co_return failed;
    };
    auto body = [&]() -> task<> {
        for (std::size_t at = 0; at < 50; ++at) {
            if (!co_await go(at)) co_return;
        }
    };
    loop.spawn(body());
    EXPECT_TRUE(loop.run_for(5s * testing::patience));
}

class queueing : public fault_scenario {
    task<result<>> write(tcp_stream stream) {
        queued_writer writer{std::move(stream), {.low = 20'000, .high = 50'000, .limit = 400'000}};
        for (std::size_t at = 0; at < text_.size(); at += 10'000) {
            auto pressure = writer.enqueue(std::string_view{text_}.substr(at, 10'000));
            if (!pressure) co_return fail(pressure);
            if (*pressure == backpressure::high_watermark) {
                if (auto room = co_await writer.writable(); !room) co_return room;
            }
        }
        if (auto flushed = co_await writer.flush(); !flushed) co_return flushed;
        co_return co_await writer.graceful_shutdown();
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(ends.client.set_send_buffer(8192));
        co_await or_return(
            co_await gather(write(std::move(ends.client)), read_all(ends.server, got_)));
        co_return got_ == text_ ? "all of it" : "something else";
    }
    std::string text_ = noise(60'000);
    std::string got_;
};
TEST_P(stream_faults_test, queued_writer) {
    fail_everywhere<queueing>();
}

class reading_lines : public fault_scenario {
    static task<result<>> send(tcp_stream stream) {
        for (const std::string_view part : {"one\ntw", "o\nthree", "\n12", "345rest"}) {
            if (auto sent = co_await async_write_all(stream, part); !sent) co_return fail(sent);
            co_await yield();
        }
        co_return stream.shutdown_write();
    }
    task<result<>> receive(tcp_stream stream) {
        buffered_reader reader{std::move(stream)};
        for (int lines = 0; lines < 3; ++lines) {
            const auto line = co_await reader.read_line(100);
            if (!line) co_return fail(line);
            got_.append(*line).append("|");
        }
        const auto block = co_await reader.read_exact(5);
        if (!block) co_return fail(block);
        got_.append(reinterpret_cast<const char*>(block->data()), block->size()).append("|");
        co_return co_await read_all(reader, got_);
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(
            co_await gather(send(std::move(ends.client)), receive(std::move(ends.server))));
        co_return got_;
    }
    std::string got_;
};
TEST_P(stream_faults_test, buffered_reader) {
    fail_everywhere<reading_lines>();
}

class reading_until : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(co_await async_write_all(ends.client, "some sentence; and more"));
        const auto length =
            co_await or_return(co_await async_read_until(ends.server, got_, ";", 100));
        co_return got_.substr(0, length);
    }
    std::string got_;
};
TEST_P(stream_faults_test, read_until) {
    fail_everywhere<reading_until>();
}

/// client <-> (left.server <-> right.client) <-> echo
class relaying : public fault_scenario {
    static task<result<>> relay(tcp_stream a, tcp_stream b) {
        const auto copied = co_await async_copy_bidirectional(a, b);
        if (!copied) co_return fail(copied.error().code);
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto left = co_await or_return(co_await make_connection());
        auto right = co_await or_return(co_await make_connection());
        auto relaying = relay(std::move(left.server), std::move(right.client));
        auto server = echo_by_read_some(std::move(right.server));
        auto client = converse(std::move(left.client), sentence, got_);
        co_await or_return(
            co_await gather(std::move(relaying), std::move(server), std::move(client)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(stream_faults_test, copy_bidirectional) {
    fail_everywhere<relaying>();
}

class copying : public fault_scenario {
    virtual task<transfer_result> copy_all(tcp_stream& from, tcp_stream& to) {
        return async_copy(from, to);
    }
    task<result<>> copy(tcp_stream from, tcp_stream to) {
        const auto copied = co_await copy_all(from, to);
        if (!copied) co_return fail(copied);
        co_return to.shutdown_write();
    }
    task<result<>> send(tcp_stream stream) {
        const auto sent = co_await async_write_all(stream, text_);
        if (!sent) co_return fail(sent);
        co_return stream.shutdown_write();
    }
    task<result<std::string>> play() override {
        auto from = co_await or_return(co_await make_connection());
        auto to = co_await or_return(co_await make_connection());
        auto copying = copy(std::move(from.server), std::move(to.client));
        co_await or_return(co_await gather(send(std::move(from.client)), std::move(copying),
                                           read_all(to.server, got_)));
        co_return got_ == text_ ? "all of it" : "something else";
    }
    std::string text_ = noise(60'000);
    std::string got_;
};
TEST_P(stream_faults_test, copy) {
    fail_everywhere<copying>();
}

class splicing final : public copying {
    task<transfer_result> copy_all(tcp_stream& from, tcp_stream& to) override {
        if (auto set = to.set_send_buffer(8192); !set) {
            co_return std::unexpected{transfer_error{set.error()}};
        }
        co_return co_await testing::copy_by_splice(from, to);
    }
};
TEST_P(stream_faults_test, copy_by_splice) {
    fail_everywhere<splicing>();
}

class sending_a_file : public fault_scenario {
    task<result<>> send(tcp_stream stream) {
        const auto moved =
            co_await async_send_file(stream, ::fileno(file_.get()), 0, content_.size());
        if (!moved) co_return fail(moved);
        co_return stream.shutdown_write();
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(ends.client.set_send_buffer(8192));
        co_await or_return(
            co_await gather(send(std::move(ends.client)), read_all(ends.server, got_)));
        co_return got_ == content_ ? "all of it" : "something else";
    }
    std::string content_ = noise(30'000);
    testing::owned_file file_ = testing::temporary_file(content_);
    std::string got_;
};
TEST_P(stream_faults_test, send_file) {
    fail_everywhere<sending_a_file>();
}

/// A small file with a head and a tail, which is copied; then a larger one, which is not.
class sending_files_with_heads : public fault_scenario {
    task<result<>> send(tcp_stream stream) {
        for (const std::size_t size : {std::size_t{600}, content_.size()}) {
            const send_file_options around{.head = head_, .tail = tail_};
            const auto moved =
                co_await async_send_file(stream, ::fileno(file_.get()), 0, size, around);
            if (!moved) co_return fail(moved);
        }
        co_return stream.shutdown_write();
    }
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        co_await or_return(ends.client.set_send_buffer(8192));
        co_await or_return(
            co_await gather(send(std::move(ends.client)), read_all(ends.server, got_)));
        const std::string expected =
            head_ + content_.substr(0, 600) + tail_ + head_ + content_ + tail_;
        co_return got_ == expected ? "all of it" : "something else";
    }
    std::string head_ = noise(700, 2);
    std::string tail_ = noise(900, 3);
    std::string content_ = noise(20'000);
    testing::owned_file file_ = testing::temporary_file(content_);
    std::string got_;
};
TEST_P(stream_faults_test, send_file_with_head_and_tail) {
    fail_everywhere<sending_files_with_heads>();
}

class talking_in_memory : public fault_scenario {
    task<result<>> send(duplex_stream stream) {
        const auto sent = co_await async_write_all(stream, text_);
        if (!sent) co_return fail(sent);
        co_return stream.shutdown_write();
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = duplex(1000);
        co_await or_return(co_await gather(send(std::move(ours)), read_all(theirs, got_)));
        co_return got_ == text_ ? "all of it" : "something else";
    }
    std::string text_ = noise(10'000);
    std::string got_;
};
TEST_P(stream_faults_test, duplex) {
    fail_everywhere<talking_in_memory>();
}

class echoing_locally : public fault_scenario {
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await or_return(co_await gather(testing::echo_by_receive(std::move(theirs)),
                                           converse(std::move(ours), "one two three", got_)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(stream_faults_test, local_echo_by_receive) {
    fail_everywhere<echoing_locally>();
}

/// A write waits for room after a read has made the loop watch the socket.
class waiting_for_room_locally : public fault_scenario {
    task<result<>> send(local_stream& stream) {
        co_await testing::turns(2);
        const transfer_result sent = co_await async_write_all(stream, text_);
        if (sent) co_return stream.shutdown_write();
        stream.close();
        co_return fail(sent);
    }
    task<result<>> receive(local_stream& stream) {
        const result<> read = co_await read_all(stream, got_);
        if (!read) stream.close();
        co_return read;
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await or_return(ours.set_send_buffer(8192));
        co_await or_return(
            co_await gather(receive(ours), send(ours), echo_by_read_some(std::move(theirs))));
        co_return got_ == text_ ? "all of it" : "something else";
    }
    const std::string text_ = noise(30'000);
    std::string got_;
};
TEST_P(stream_faults_test, local_write_that_waits_beside_a_read) {
    fail_everywhere<waiting_for_room_locally>();
}

/// The rest of a buffer is read without waiting.
class reading_a_piece_in_parts : public fault_scenario {
    static task<result<>> send(local_stream& stream) {
        for (const std::string_view part : {"and ", "the ", "last"}) {
            if (auto sent = co_await async_write_all(stream, part); !sent) co_return fail(sent);
            for (int turns = 3; turns > 0; --turns)
                co_await async_sleep(0s);
        }
        co_return result<>{};
    }
    static task<result<>> receive(local_stream& stream, std::string& got) {
        std::string rest(12, '\0');
        if (auto came = co_await async_read_exact(stream, rest); !came) co_return fail(came);
        got += rest;
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await or_return(co_await async_write_all(ours, "one two three"));
        std::string got(13, '\0');
        for (mutable_buffer rest{got}; !rest.empty();) {
            const auto part = rest.first(std::min<std::size_t>(rest.size(), 4));
            rest = rest.subspan(co_await or_return(co_await theirs.read_some(part)));
        }
        co_await or_return(co_await gather(receive(theirs, got), send(ours)));
        co_return got;
    }
};
TEST_P(stream_faults_test, local_read_in_parts) {
    fail_everywhere<reading_a_piece_in_parts>();
}

/// The part of async_copy() that moves large amounts.
class passing_through_a_pipe : public fault_scenario {
    task<result<std::string>> play() override {
        auto from = co_await or_return(co_await make_connection());
        auto to = co_await or_return(co_await make_connection());
        co_await or_return(co_await async_write_all(from.client, "through the kernel"));
        co_await or_return(from.client.shutdown_write());
        co_await or_return(co_await from.server.readable());
        std::size_t moved = 0;
        co_await or_return(co_await detail::move_through_pipe(from.server, to.client, moved));
        // The end of the stream; without a pipe, all the bytes.
        co_await or_return(co_await async_copy(from.server, to.client));
        co_await or_return(to.client.shutdown_write());
        co_await or_return(co_await testing::read_all(to.server, got_));
        co_return got_;
    }
    std::string got_;
};
TEST_P(stream_faults_test, pipe) {
    fail_everywhere<passing_through_a_pipe>();
}

/// A writer that has failed reports the same error again.
class asking_a_broken_writer : public fault_scenario {
    task<result<std::string>> play() override {
        auto ends = co_await or_return(co_await make_connection());
        queued_writer writer{std::move(ends.client), {.low = 10, .high = 20, .limit = 100}};
        co_await or_return(writer.enqueue("some words"));
        const auto first = co_await writer.flush();
        const auto second = co_await writer.flush();
        if (first.has_value() != second.has_value()) co_return "another outcome";
        if (!first) co_return fail(first);
        co_return "flushed";
    }
};
TEST_P(stream_faults_test, broken_writer) {
    fail_everywhere<asking_a_broken_writer>();
}

INSTANTIATE_TEST_SUITE_P(backends, stream_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
