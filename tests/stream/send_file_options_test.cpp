// async_send_file() with a head and a tail.

#include <simplenet/stream/send_file.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"
#include "support/segments.hpp"
#include "support/temporary_directory.hpp"

#include "sys/seam.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/testing/faulty_stream.hpp>

#include <algorithm>
#include <array>
#include <future>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::checked;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::noise;
using testing::real_backends;
using testing::turns;

class send_file_options_test : public testing::backend_test {};
class send_file_segments_test : public testing::backend_test {};

constexpr std::uint64_t all_of_it = std::numeric_limits<std::uint64_t>::max();

unique_fd file_with(std::string_view content) {
    const testing::temporary_directory place;
    unique_fd file{checked(::open((place / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600))};
    while (!content.empty()) {
        const auto count = checked(::write(file.get(), content.data(), content.size()));
        content.remove_prefix(static_cast<std::size_t>(count));
    }
    return file;
}

const std::string the_head = "a head of a few bytes: ";
const std::string the_tail = " and a tail";
// Below and above what is copied, what one turn sends, and a block of other streams.
constexpr std::array<std::size_t, 8> sizes{0, 1, 612, 16'384, 16'385, 65'536, 100'000, 600'000};

/// Sends a file of each size in each way, and expects all of it.
template <class Connect>
task<> expect_whole(Connect connect) {
    for (const std::size_t size : sizes) {
        const std::string content = noise(size + 10);
        const unique_fd file = file_with(content);
        for (int way = 0; way < 4; ++way) {
            send_file_options around;
            std::string expected = content.substr(5, size);
            if ((way & 1) != 0) expected = the_head + expected, around.head = the_head;
            if ((way & 2) != 0) expected += the_tail, around.tail = the_tail;
            auto [stream, peer] = connect();
            auto got = std::async(std::launch::async,
                                  [&, &from = peer] { return from.receive(expected.size()); });
            const transfer_result sent =
                co_await async_send_file(stream, file.get(), 5, size, around);
            EXPECT_EQ(sent.value_or(0), expected.size()) << size << " in way " << way;
            EXPECT_TRUE(got.get() == expected) << size << " in way " << way;
            EXPECT_EQ(peer.peek(), -EAGAIN);
        }
    }
}

TEST_P(send_file_options_test, a_head_a_file_and_a_tail_arrive_in_order) {
    run([]() -> task<> {
        co_await expect_whole([] { return connect_raw(); });
        co_await expect_whole([] { return connect_raw(testing::small_buffers); });
        co_await expect_whole([] { return connect_raw_local(); });
    });
}

TEST_P(send_file_options_test, other_streams_get_the_same_bytes) {
    run([]() -> task<> {
        co_await expect_whole([] {
            auto [ours, theirs] = connect_raw();
            return testing::raw_connection<any_stream>{any_stream{std::move(ours)},
                                                       std::move(theirs)};
        });
        co_await expect_whole([] {
            auto [ours, theirs] = connect_raw();
            testing::faulty_stream<tcp_stream> faulty{std::move(ours)};
            faulty.writes().random_pieces(7, 30'000);
            return testing::raw_connection<testing::faulty_stream<tcp_stream>>{std::move(faulty),
                                                                               std::move(theirs)};
        });
        co_await expect_whole([] {
            auto [ours, theirs] = connect_raw();
            return testing::raw_connection<write_half<tcp_stream>>{split(std::move(ours)).second,
                                                                   std::move(theirs)};
        });
    });
}

TEST_P(send_file_options_test, a_duplex_gets_the_same_bytes) {
    const std::string content = noise(100'000);
    const unique_fd file = file_with(content);
    run([&]() -> task<> {
        auto [one, two] = duplex(10'000);
        std::string got(the_head.size() + content.size() + the_tail.size(), '\0');
        auto reading = spawn([&]() -> task<> { EXPECT_TRUE(co_await async_read_exact(two, got)); });
        const send_file_options around{.head = the_head, .tail = the_tail};
        const auto sent = co_await async_send_file(one, file.get(), 0, all_of_it, around);
        EXPECT_EQ(sent.value_or(0), got.size());
        co_await reading;
        EXPECT_TRUE(got == the_head + content + the_tail);
    });
}

TEST_P(send_file_options_test, a_file_that_sendfile_refuses_keeps_its_head_and_tail) {
    const unique_fd made_up{checked(::open("/proc/self/auxv", O_RDONLY | O_CLOEXEC))};
    std::array<char, 4096> content{};
    const ssize_t size = checked(::pread(made_up.get(), content.data(), content.size(), 0));
    const std::string expected =
        the_head + std::string(content.data(), static_cast<std::size_t>(size)) + the_tail;
    run([&]() -> task<> {
        const send_file_options around{.head = the_head, .tail = the_tail};
        for (const std::uint64_t count :
             {all_of_it, std::uint64_t{100'000}, std::uint64_t{9'000}}) {
            auto [ours, theirs] = connect_raw();
            const auto sent = co_await async_send_file(ours, made_up.get(), 0, count, around);
            EXPECT_EQ(sent.value_or(0), expected.size());
            EXPECT_EQ(theirs.receive(expected.size()), expected);
        }
    });
}

TEST_P(send_file_options_test, the_tail_follows_a_file_that_is_shorter) {
    run([]() -> task<> {
        for (const std::size_t size : {std::size_t{0}, std::size_t{600}, std::size_t{50'000}}) {
            const std::string content = noise(size);
            const unique_fd file = file_with(content);
            for (const std::uint64_t count : {std::uint64_t{60'000}, all_of_it}) {
                auto [ours, theirs] = connect_raw();
                const send_file_options around{.head = the_head, .tail = the_tail};
                const auto sent = co_await async_send_file(ours, file.get(), 0, count, around);
                const std::string expected = the_head + content + the_tail;
                EXPECT_EQ(sent.value_or(0), expected.size()); // which tells that it was shorter
                EXPECT_TRUE(theirs.receive(expected.size()) == expected);
            }
        }
    });
}

TEST_P(send_file_options_test, a_file_that_shrinks_ends_with_its_tail) {
    const unique_fd file = file_with(std::string(8 << 20, 'x'));
    auto [ours, theirs] = connect_raw({.ours = 65536, .theirs = 65536});
    run([&]() -> task<> {
        auto sending = spawn([&]() -> task<transfer_result> {
            const send_file_options around{.head = the_head, .tail = the_tail};
            co_return co_await async_send_file(ours, file.get(), 0, 8 << 20, around);
        });
        co_await turns(10);
        EXPECT_EQ(::ftruncate(file.get(), 1), 0);
        std::string got;
        while (!sending.done()) {
            if (theirs.peek() > 0) got += theirs.receive(1);
            co_await yield();
        }
        const transfer_result outcome = co_await sending;
        EXPECT_LT(outcome.value_or(0), 8U << 20U);
        got += theirs.receive(outcome.value_or(0) - got.size());
        EXPECT_TRUE(got.starts_with(the_head));
        EXPECT_TRUE(got.ends_with(the_tail));
    });
}

TEST_P(send_file_options_test, a_stop_counts_from_the_first_byte_of_the_head) {
    const std::string content = noise(3 << 20);
    const unique_fd file = file_with(content);
    const std::string long_head = noise(300'000, 3);
    const std::string long_tail = noise(300'000, 4);
    const std::string whole = long_head + content + long_tail;
    run([&]() -> task<> {
        for (int pieces = 0; pieces < 70; pieces += 3) {
            auto [ours, theirs] = connect_raw({.ours = 65536, .theirs = 65536});
            auto sending = spawn([&]() -> task<transfer_result> {
                const send_file_options around{.head = long_head, .tail = long_tail};
                co_return co_await async_send_file(ours, file.get(), 0, all_of_it, around);
            });
            std::string got;
            for (int each = 0; each < pieces; ++each) {
                co_await turns(2);
                std::array<char, 50'000> some;
                const ssize_t count = ::recv(theirs.fd(), some.data(), some.size(), MSG_DONTWAIT);
                if (count > 0) got.append(some.data(), static_cast<std::size_t>(count));
            }
            sending.request_stop();
            const transfer_result outcome = co_await sending;
            EXPECT_TRUE(outcome || error_of(outcome) == std::errc::operation_canceled);
            const std::size_t done = outcome ? *outcome : outcome.error().transferred;
            EXPECT_LE(got.size(), done);
            got += theirs.receive(done - got.size());
            EXPECT_TRUE(got == whole.substr(0, done)) << pieces;
            EXPECT_EQ(theirs.peek(), -EAGAIN);
        }
    });
}

TEST_P(send_file_options_test, a_bad_file_is_an_error_before_or_after_its_head) {
    run([]() -> task<> {
        const send_file_options around{.head = the_head, .tail = the_tail};
        for (const std::uint64_t count : {std::uint64_t{1}, all_of_it}) {
            auto [ours, theirs] = connect_raw();
            const auto sent = co_await async_send_file(ours, -1, 0, count, around);
            EXPECT_EQ(error_of(sent), std::errc::bad_file_descriptor);
            const std::size_t done = sent.error().transferred;
            EXPECT_TRUE(done == 0 || done == the_head.size());
            EXPECT_EQ(theirs.receive(done), the_head.substr(0, done));
            EXPECT_TRUE(co_await async_write_all(ours, "intact"));
            EXPECT_EQ(theirs.receive(6), "intact");
        }
    });
}

/// The segments in which a file of `size` bytes leaves.
task<std::uint32_t> segments_of_file(std::size_t size, std::uint64_t count,
                                     send_file_options around) {
    const unique_fd file = file_with(noise(size));
    auto [ours, theirs] = connect_raw();
    EXPECT_TRUE(co_await async_send_file(ours, file.get(), 0, count, around));
    // Nothing is kept back: all of it has left by now.
    co_return testing::data_segments_sent(ours.native_handle());
}

TEST_P(send_file_segments_test, head_file_and_tail_leave_in_one_segment) {
    run([]() -> task<> { // a segment over loopback has room for 65483 bytes
        for (const std::size_t size : {std::size_t{612}, std::size_t{30'000}}) {
            for (const std::uint64_t count : {std::uint64_t{size}, all_of_it}) {
                EXPECT_EQ(co_await segments_of_file(size, count, {.head = the_head}), 1U);
                EXPECT_EQ(co_await segments_of_file(size, count, {.tail = the_tail}), 1U);
                EXPECT_EQ(
                    co_await segments_of_file(size, count, {.head = the_head, .tail = the_tail}),
                    1U);
            }
        }
        EXPECT_EQ(co_await segments_of_file(0, 0, {.head = the_head, .tail = the_tail}), 1U);
        EXPECT_EQ(co_await segments_of_file(0, 5, {.head = the_head}), 1U);
        EXPECT_EQ(co_await segments_of_file(0, 100'000, {.head = the_head}), 1U);
        EXPECT_EQ(co_await segments_of_file(30'000, 100'000, {.head = the_head}), 1U);
    });
}

TEST_P(send_file_segments_test, a_tail_leaves_with_the_last_part_of_a_large_file) {
    const std::size_t size = (2U << 20U) + 100'000;
    run([&]() -> task<> {
        // The fewest of several: while processors are busy, parts leave alone that need not.
        std::uint32_t fewest_with = std::numeric_limits<std::uint32_t>::max();
        std::uint32_t fewest_without = fewest_with;
        for (int each = 0; each < 8; ++each) {
            const auto without = co_await segments_of_file(size, size, {});
            const auto with = co_await segments_of_file(size, size, {.tail = the_tail});
            fewest_without = std::min(fewest_without, without);
            fewest_with = std::min(fewest_with, with);
        }
        EXPECT_LE(fewest_with, fewest_without);
    });
}

TEST_P(send_file_segments_test, the_socket_is_not_corked_afterwards) {
    const unique_fd file = file_with(noise(30'000));
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw();
        EXPECT_TRUE(ours.set_no_delay(true));
        EXPECT_TRUE(co_await async_send_file(ours, file.get(), 0, all_of_it, {.tail = the_tail}));
        const auto before = testing::data_segments_sent(ours.native_handle());
        EXPECT_TRUE(co_await ours.write_some("x"));
        EXPECT_EQ(testing::data_segments_sent(ours.native_handle()), before + 1);
        const auto no_delay = ours.no_delay();
        EXPECT_TRUE(no_delay.value_or(false));
    });
}

#if SIMPLENET_SEAMS
class call_counter final : public detail::sys::interceptor {
public:
    std::vector<detail::sys::call> calls;

private:
    long on_call(detail::sys::pending_call& call) noexcept override {
        calls.push_back(call.which());
        return call.make();
    }
};

TEST_P(send_file_segments_test, a_small_file_takes_two_system_calls) {
    using detail::sys::call;
    const unique_fd file = file_with(noise(612));
    run([&]() -> task<> {
        auto [ours, theirs] = connect_raw();
        const send_file_options around{.head = the_head, .tail = the_tail};
        call_counter counter;
        const detail::sys::intercepting installed{counter};
        EXPECT_TRUE(co_await async_send_file(ours, file.get(), 0, 612, around));
        EXPECT_EQ(counter.calls, (std::vector{call::pread, call::sendmsg}));
    });
}
#endif

INSTANTIATE_TEST_SUITE_P(backends, send_file_options_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, send_file_segments_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
