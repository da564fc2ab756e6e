// write_options of every stream of the library.

#include <simplenet/core/write_options.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/segments.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/testing/faulty_stream.hpp>

#include <array>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::noise;
using testing::real_backends;

class write_options_test : public testing::backend_test {};
class write_options_segments_test : public testing::backend_test {};

/// A user's stream, which knows nothing of options.
struct plain_tcp {
    tcp_stream below;
    auto write_some(const_buffer from) { return below.write_some(from); }
};
static_assert(async_writer<plain_tcp>);

/// A user's stream that takes options, but only one buffer.
struct one_buffer_tcp {
    tcp_stream below;
    auto read_some(mutable_buffer into) { return below.read_some(into); }
    auto write_some(const_buffer from, write_options options) {
        return below.write_some(from, options);
    }
    auto write_some(const_buffer from) { return below.write_some(from); }
};

/// The segments in which `write` sends `size` bytes over TCP, on a stream that `make` makes of it.
template <class Make, class Write>
task<std::uint32_t> segments_of(Make make, Write write, std::size_t size) {
    for (;;) {
        const testing::segment_clock clock;
        auto [ours, theirs] = connect_raw();
        const int fd = ours.native_handle();
        auto stream = make(std::move(ours));
        co_await write(stream);
        EXPECT_EQ(theirs.receive(size).size(), size);
        const std::uint32_t count = testing::data_segments_sent(fd);
        if (!clock.was_slow()) co_return count;
    }
}

constexpr std::string_view first_part = "a head, ";
constexpr std::string_view second_part = "and a body";

const auto write_apart = [](auto& stream) -> task<> {
    EXPECT_TRUE(co_await stream.write_some(first_part));
    EXPECT_TRUE(co_await async_write_all(stream, second_part));
};
const auto write_some_with_more = [](auto& stream) -> task<> {
    const write_options more{.more = true};
    const result<std::size_t> count = co_await stream.write_some(first_part, more);
    EXPECT_EQ(count.value_or(0), first_part.size());
    EXPECT_TRUE(co_await async_write_all(stream, second_part));
};
const auto write_all_with_more = [](auto& stream) -> task<> {
    const write_options more{.more = true};
    const transfer_result count = co_await async_write_all(stream, first_part, more);
    EXPECT_EQ(count.value_or(0), first_part.size());
    EXPECT_TRUE(co_await stream.write_some(second_part));
};
const auto gather_with_more = [](auto& stream) -> task<> {
    const write_options more{.more = true};
    const std::array<const_buffer, 3> parts{const_buffer{first_part}, const_buffer{},
                                            const_buffer{second_part}};
    EXPECT_TRUE(co_await async_write_all(stream, std::span<const const_buffer>{parts}, more));
    std::span<const const_buffer> rest{parts};
    while (!rest.empty()) { // some streams write one buffer of several
        EXPECT_TRUE(co_await stream.write_some(rest.first(1), more));
        rest = rest.subspan(1);
    }
    EXPECT_TRUE(co_await async_write_all(stream, second_part));
};

const auto itself = [](tcp_stream stream) { return stream; };
const auto as_any = [](tcp_stream stream) { return any_stream{std::move(stream)}; };
const auto as_any_of_one = [](tcp_stream stream) {
    return any_stream{one_buffer_tcp{std::move(stream)}};
};
const auto as_faulty = [](tcp_stream stream) {
    return testing::faulty_stream<tcp_stream>{std::move(stream)};
};
const auto as_half = [](tcp_stream stream) { return split(std::move(stream)).second; };
/// The write half of an any_stream in a faulty stream.
const auto as_many = [](tcp_stream stream) {
    return split(testing::faulty_stream<any_stream>{any_stream{std::move(stream)}}).second;
};
const auto as_plain = [](tcp_stream stream) { return plain_tcp{std::move(stream)}; };

template <class Make>
task<> expect_options_to_arrive(Make make) {
    const std::size_t size = first_part.size() + second_part.size();
    EXPECT_EQ(co_await segments_of(make, write_apart, size), 2U);
    EXPECT_EQ(co_await segments_of(make, write_some_with_more, size), 1U);
    EXPECT_EQ(co_await segments_of(make, write_all_with_more, size), 1U);
    EXPECT_EQ(co_await segments_of(make, gather_with_more, 2 * size + second_part.size()), 1U);
}

TEST_P(write_options_segments_test, a_head_and_a_body_leave_in_one_segment) {
    run([]() -> task<> { co_await expect_options_to_arrive(itself); });
}

TEST_P(write_options_segments_test, an_any_stream_passes_them_on) {
    run([]() -> task<> {
        co_await expect_options_to_arrive(as_any);
        co_await expect_options_to_arrive(as_any_of_one);
    });
}

TEST_P(write_options_segments_test, a_faulty_stream_passes_them_on) {
    run([]() -> task<> { co_await expect_options_to_arrive(as_faulty); });
}

TEST_P(write_options_segments_test, the_half_of_a_stream_passes_them_on) {
    run([]() -> task<> {
        co_await expect_options_to_arrive(as_half);
        co_await expect_options_to_arrive(as_many);
    });
}

TEST_P(write_options_segments_test, no_delay_does_not_send_the_head_alone) {
    run([]() -> task<> {
        const auto hasty = [](tcp_stream stream) {
            EXPECT_TRUE(stream.set_no_delay(true));
            return stream;
        };
        const std::size_t size = first_part.size() + second_part.size();
        EXPECT_EQ(co_await segments_of(hasty, write_some_with_more, size), 1U);
    });
}

TEST_P(write_options_segments_test, a_stream_of_the_user_without_options_is_written_to) {
    run([]() -> task<> {
        const auto write = [](plain_tcp& stream) -> task<> {
            EXPECT_TRUE(co_await async_write_all(stream, first_part, {.more = true}));
            EXPECT_TRUE(co_await async_write_all(stream, second_part));
        };
        EXPECT_EQ(co_await segments_of(as_plain, write, first_part.size() + second_part.size()),
                  2U);
    });
}

TEST_P(write_options_segments_test, several_buffers_leave_together_on_a_stream_that_takes_one) {
    run([]() -> task<> {
        const auto make = [](tcp_stream stream) { return one_buffer_tcp{std::move(stream)}; };
        const auto write = [](one_buffer_tcp& stream) -> task<> {
            const std::vector<const_buffer> parts(20, const_buffer{second_part});
            EXPECT_TRUE(co_await async_write_all(stream, std::span<const const_buffer>{parts}));
        };
        EXPECT_EQ(co_await segments_of(make, write, 20 * second_part.size()), 1U);
    });
}

// The buffers behind the last byte are empty: nothing would push the segment.
TEST_P(write_options_segments_test, empty_buffers_at_the_end_hold_nothing_back) {
    run([]() -> task<> {
        const auto write = [](auto& stream) -> task<> {
            std::vector<const_buffer> parts(40);
            parts[0] = const_buffer{first_part};
            parts[3] = const_buffer{second_part};
            EXPECT_TRUE(co_await async_write_all(stream, std::span<const const_buffer>{parts}));
        };
        const auto expect_sent = [&](auto make) -> task<> {
            auto [ours, theirs] = connect_raw();
            const int fd = ours.native_handle();
            auto stream = make(std::move(ours));
            co_await write(stream);
            EXPECT_EQ(testing::data_segments_sent(fd), 1U); // without waiting for more
        };
        co_await expect_sent(as_any);
        co_await expect_sent([](tcp_stream of) { return one_buffer_tcp{std::move(of)}; });
    });
}

TEST_P(write_options_test, a_large_write_with_more_arrives_however_slowly_the_peer_reads) {
    const std::string content = noise(3 << 20);
    const auto send = [&](auto connection) -> task<> {
        auto peer = std::async(std::launch::async,
                               [&] { return connection.theirs.receive(content.size() + 1); });
        const write_options more{.more = true};
        const auto first = co_await async_write_all(
            connection.ours, const_buffer{content.data(), content.size() / 2}, more);
        EXPECT_EQ(first.value_or(0), content.size() / 2);
        const std::array<const_buffer, 2> rest{
            const_buffer{content.data() + content.size() / 2, 100},
            const_buffer{content.data() + content.size() / 2 + 100, content.size() / 2 - 100}};
        const auto second =
            co_await async_write_all(connection.ours, std::span<const const_buffer>{rest}, more);
        EXPECT_EQ(second.value_or(0), content.size() / 2);
        EXPECT_TRUE(co_await async_write_all(connection.ours, "!"));
        EXPECT_TRUE(peer.get() == content + "!");
    };
    run([&]() -> task<> {
        co_await send(connect_raw(testing::small_buffers));
        co_await send(connect_raw_local(testing::small_buffers));
    });
}

TEST_P(write_options_test, a_stop_of_a_write_with_more_counts_exactly) {
    const std::string content = noise(1 << 20);
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw(testing::small_buffers);
        auto writing = spawn([&]() -> task<transfer_result> {
            co_return co_await async_write_all(ours, content, {.more = true});
        });
        co_await testing::turns(5);
        writing.request_stop();
        const transfer_result stopped = co_await writing;
        EXPECT_EQ(error_of(stopped), std::errc::operation_canceled);
        const std::size_t done = stopped.error().transferred;
        EXPECT_GT(done, 0U);
        auto peer = std::async(std::launch::async, [&] { return theirs.receive(content.size()); });
        EXPECT_TRUE(co_await async_write_all(ours, const_buffer{content}.subspan(done)));
        EXPECT_TRUE(peer.get() == content);
    });
}

TEST_P(write_options_test, they_do_nothing_in_memory_and_on_local_streams) {
    run([]() -> task<> {
        auto [one, two] = duplex();
        auto [local, peer] = connect_raw_local();
        std::array<char, 8> buffer{};
        EXPECT_TRUE(co_await async_write_all(one, first_part, {.more = true}));
        EXPECT_TRUE(co_await async_read_exact(two, buffer));
        EXPECT_EQ((co_await one.write_some(first_part, {.more = true})).value_or(0),
                  first_part.size());
        EXPECT_TRUE(co_await async_read_exact(two, buffer));
        EXPECT_TRUE(co_await local.write_some(first_part, {.more = true}));
        EXPECT_EQ(peer.receive(first_part.size()), first_part);
    });
}

TEST_P(write_options_test, an_empty_write_with_more_needs_no_room) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        EXPECT_EQ((co_await ours.write_some("", {.more = true})).value_or(7), 0U);
        EXPECT_EQ((co_await async_write_all(ours, const_buffer{}, {.more = true})).value_or(7), 0U);
        EXPECT_EQ(theirs.peek(), -EAGAIN);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, write_options_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, write_options_segments_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
