#include <simplenet/stream/send_file.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/pipes.hpp"
#include "support/raw_peer.hpp"
#include "support/sigpipe_watch.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <array>
#include <csignal>
#include <cstdint>
#include <future>
#include <limits>
#include <string>

#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::checked;
using testing::connect_raw;
using testing::connect_raw_local;
using testing::noise;
using testing::turns;

constexpr std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();

/// A file without a name.
unique_fd file_of(std::string_view content) {
    const testing::temporary_directory place;
    unique_fd file{checked(::open((place / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600))};
    while (!content.empty()) {
        const auto count = checked(::write(file.get(), content.data(), content.size()));
        content.remove_prefix(static_cast<std::size_t>(count));
    }
    return file;
}

class send_file_test : public testing::backend_test {};

template <class Connection>
task<> send_all(Connection connection, int file, const std::string& content) {
    auto peer =
        std::async(std::launch::async, [&] { return connection.theirs.receive(content.size()); });
    const auto sent = co_await async_send_file(connection.ours, file, 0, content.size());
    EXPECT_EQ(sent.value_or(0), content.size());
    EXPECT_TRUE(peer.get() == content);
}

TEST_P(send_file_test, a_file_arrives_byte_for_byte) {
    const std::string content = noise(3 << 20);
    const unique_fd file = file_of(content);
    run([&]() -> task<> {
        co_await send_all(connect_raw(), file.get(), content);
        co_await send_all(connect_raw_local(), file.get(), content);
        EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 3 << 20); // the file's own offset is unchanged
    });
}

TEST_P(send_file_test, a_part_of_a_file_is_sent_and_the_rest_is_not) {
    const std::string content = noise(100'000);
    const unique_fd file = file_of(content);
    auto [ours, theirs] = connect_raw();
    const std::array<std::pair<std::size_t, std::size_t>, 4> parts{
        {{0, 1}, {1, 4096}, {99'999, 1}, {4095, 50'000}}};
    run([&]() -> task<> {
        for (const auto& [offset, count] : parts) {
            EXPECT_EQ((co_await async_send_file(ours, file.get(), offset, count)).value_or(0),
                      count);
            EXPECT_TRUE(theirs.receive(count) == content.substr(offset, count));
        }
        EXPECT_EQ(theirs.peek(), -EAGAIN);
    });
}

TEST_P(send_file_test, a_file_that_is_shorter_ends_the_transfer) {
    const std::string content = noise(50'000);
    const unique_fd file = file_of(content);
    const unique_fd empty = file_of("");
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_EQ((co_await async_send_file(ours, file.get(), 0, everything)).value_or(0), 50'000U);
        EXPECT_TRUE(theirs.receive(50'000) == content);
        EXPECT_EQ((co_await async_send_file(ours, file.get(), 49'990, 100)).value_or(0), 10U);
        EXPECT_TRUE(theirs.receive(10) == content.substr(49'990));
        EXPECT_EQ((co_await async_send_file(ours, file.get(), 50'000, 1)).value_or(7), 0U);
        EXPECT_EQ((co_await async_send_file(ours, file.get(), 1ULL << 40U, everything)).value_or(7),
                  0U);
        EXPECT_EQ((co_await async_send_file(ours, empty.get(), 0, everything)).value_or(7), 0U);
        EXPECT_EQ((co_await async_send_file(ours, file.get(), 0, 0)).value_or(7), 0U);
        EXPECT_EQ(theirs.peek(), -EAGAIN);
    });
}

TEST_P(send_file_test, a_file_beyond_4_gib_is_sent_from_its_offset) {
    const std::string tail = noise(10'000);
    const unique_fd file = file_of("");
    constexpr std::uint64_t far =
        (std::uint64_t{1} << 32U) + 12'345; // a sparse file, which costs nothing
    ASSERT_EQ(::pwrite(file.get(), tail.data(), tail.size(), far), 10'000);
    auto [ours, theirs] = connect_raw();
    run([&]() -> task<> {
        EXPECT_EQ((co_await async_send_file(ours, file.get(), far, everything)).value_or(0),
                  tail.size());
        EXPECT_TRUE(theirs.receive(tail.size()) == tail);
    });
}

TEST_P(send_file_test, files_that_sendfile_refuses_are_read_and_written) {
    // Generated as they are read; sendfile(2) fails with EINVAL for many of these files.
    auto [ours, theirs] = connect_raw();
    const unique_fd made_up{checked(::open("/proc/self/auxv", O_RDONLY | O_CLOEXEC))};
    std::array<char, 4096> expected{};
    const ssize_t size = checked(::pread(made_up.get(), expected.data(), expected.size(), 0));
    const unique_fd zeros{checked(::open("/dev/zero", O_RDONLY | O_CLOEXEC))};
    run([&]() -> task<> {
        const transfer_result sent = co_await async_send_file(ours, made_up.get(), 0, everything);
        EXPECT_EQ(sent.value_or(0), static_cast<std::size_t>(size));
        EXPECT_EQ(theirs.receive(static_cast<std::size_t>(size)),
                  std::string(expected.data(), static_cast<std::size_t>(size)));
        EXPECT_EQ((co_await async_send_file(ours, zeros.get(), 0, 100'000)).value_or(0), 100'000U);
        EXPECT_TRUE(theirs.receive(100'000) == std::string(100'000, '\0'));
    });
}

TEST_P(send_file_test, a_stream_without_a_descriptor_gets_the_bytes) {
    const std::string content = noise(1 << 20);
    const unique_fd file = file_of(content);
    run([&]() -> task<> {
        auto [one, two] = duplex(10'000);
        std::string got(content.size(), '\0');
        auto reading = spawn([&]() -> task<> { EXPECT_TRUE(co_await async_read_exact(two, got)); });
        EXPECT_EQ((co_await async_send_file(one, file.get(), 0, everything)).value_or(0),
                  content.size());
        co_await reading;
        EXPECT_TRUE(got == content);

        const transfer_result some =
            co_await with_timeout(async_send_file(one, file.get(), 0, everything), 1ms);
        EXPECT_EQ(error_of(some), errc::deadline_exceeded);
        EXPECT_EQ(some.error().transferred, 10'000U);
    });
}

TEST_P(send_file_test, a_bad_file_is_an_error) {
    auto [ours, theirs] = connect_raw();
    const auto [out, in] = testing::make_pipe();
    const unique_fd write_only{checked(::open("/dev/null", O_WRONLY | O_CLOEXEC))};
    const unique_fd file = file_of("content");
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await async_send_file(ours, -1, 0, 1)),
                  std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(co_await async_send_file(ours, write_only.get(), 0, 1)),
                  std::errc::bad_file_descriptor);
        EXPECT_EQ(error_of(co_await async_send_file(ours, out.get(), 0, 1)),
                  std::errc::invalid_seek);
        EXPECT_EQ(error_of(co_await async_send_file(ours, ours.native_handle(), 0, 1)),
                  std::errc::invalid_seek);
        EXPECT_EQ(error_of(co_await async_send_file(ours, file.get(), everything, 1)),
                  std::errc::invalid_argument);
        EXPECT_EQ(theirs.peek(), -EAGAIN);
        EXPECT_TRUE(co_await async_send_file(ours, file.get(), 0, 7)); // the stream is intact
        EXPECT_EQ(theirs.receive(7), "content");
        ours.close();
        EXPECT_EQ(error_of(co_await async_send_file(ours, file.get(), 0, 1)),
                  std::errc::bad_file_descriptor);
    });
}

TEST_P(send_file_test, a_stop_reports_exactly_how_much_was_sent_and_the_rest_can_follow) {
    const std::string content = noise(8 << 20);
    const unique_fd file = file_of(content);
    for (int how = 0; how < 3; ++how) {
        auto [ours, theirs] = connect_raw({.ours = 65536, .theirs = 65536});
        std::string got;
        run([&]() -> task<> {
            auto sending = spawn([&]() -> task<transfer_result> {
                co_return co_await async_send_file(ours, file.get(), 0, everything);
            });
            transfer_result outcome{};
            if (how == 0) { // while it waits for room
                co_await turns(10);
                sending.request_stop();
                outcome = co_await sending;
            } else if (how == 1) { // while the peer drains, at any time
                for (int each = 0; each < 4; ++each) {
                    co_await turns(3);
                    got += theirs.receive(10'000);
                }
                sending.request_stop();
                outcome = co_await sending;
            } else {
                sending.request_stop(); // before its start
                outcome = co_await sending;
            }
            EXPECT_EQ(error_of(outcome), canceled);
            std::size_t done = outcome.error().transferred;
            EXPECT_EQ(done == 0, how == 2);

            auto peer = std::async(std::launch::async,
                                   [&] { return theirs.receive(content.size() - got.size()); });
            outcome = co_await async_send_file(ours, file.get(), done, everything);
            EXPECT_EQ(outcome.value_or(0), content.size() - done);
            got += peer.get();
            EXPECT_TRUE(got == content);
        });
    }
}

TEST_P(send_file_test, a_deadline_leaves_the_stream_usable) {
    const unique_fd file = file_of(std::string(8 << 20, 'x'));
    auto [ours, theirs] = connect_raw({.ours = 65536, .theirs = 65536});
    run([&]() -> task<> {
        const transfer_result some =
            co_await with_timeout(async_send_file(ours, file.get(), 0, everything), 5ms);
        EXPECT_EQ(error_of(some), errc::deadline_exceeded);
        const std::size_t done = some.error().transferred;
        EXPECT_GT(done, 0U);
        EXPECT_EQ(theirs.receive(done).size(), done);
        EXPECT_EQ(theirs.peek(), -EAGAIN);
        EXPECT_TRUE(co_await ours.write_some("y"));
        EXPECT_EQ(theirs.receive(1), "y");
    });
}

TEST_P(send_file_test, an_empty_transfer_needs_no_room) {
    const unique_fd file = file_of(noise(8 << 20));
    auto [ours, theirs] = connect_raw({.ours = 65536, .theirs = 65536});
    run([&]() -> task<> {
        const auto filled =
            co_await with_timeout(async_send_file(ours, file.get(), 0, everything), 5ms);
        EXPECT_EQ(error_of(filled), errc::deadline_exceeded);

        EXPECT_EQ((co_await async_send_file(ours, file.get(), 0, 0)).value_or(7), 0U);
    });
}

// A nonempty error queue makes every poll(2) report POLLERR. With io_uring, the wait for room must
// not spin.
TEST_P(send_file_test, an_unread_error_queue_keeps_no_loop_awake) {
    const std::string content = noise(8 << 20);
    const unique_fd file = file_of(content);
    auto [ours, theirs] = connect_raw({.ours = 65536, .theirs = 65536});
    run([&]() -> task<> {
        constexpr int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
        checked(::setsockopt(ours.native_handle(), SOL_SOCKET, SO_TIMESTAMPING, &stamps,
                             sizeof stamps));
        EXPECT_TRUE(co_await ours.write_some("x"));
        EXPECT_EQ(theirs.receive(1), "x");
        pollfd polled{.fd = ours.native_handle(), .events = 0, .revents = 0};
        EXPECT_EQ(::poll(&polled, 1, 5'000), 1);
        EXPECT_EQ(polled.revents, POLLERR);
        constexpr int none = 0;
        checked(
            ::setsockopt(ours.native_handle(), SOL_SOCKET, SO_TIMESTAMPING, &none, sizeof none));

        auto sending = spawn([&]() -> task<transfer_result> {
            co_return co_await async_send_file(ours, file.get(), 0, everything);
        });
        co_await turns(200); // until the socket is full
        const auto before = event_loop::current()->metrics().turns;
        (void)co_await async_sleep(50ms);
        EXPECT_LT(event_loop::current()->metrics().turns - before, 40U);

        auto peer = std::async(std::launch::async, [&] { return theirs.receive(content.size()); });
        EXPECT_EQ((co_await sending).value_or(0), content.size());
        EXPECT_TRUE(peer.get() == content);
    });
}

TEST_P(send_file_test, a_close_ends_it) {
    const unique_fd file = file_of(std::string(8 << 20, 'x'));
    auto [ours, theirs] = connect_raw({.ours = 65536, .theirs = 65536});
    run([&]() -> task<> {
        auto sending = spawn([&]() -> task<transfer_result> {
            co_return co_await async_send_file(ours, file.get(), 0, everything);
        });
        co_await turns(10);
        ours.close();
        EXPECT_EQ(error_of(co_await sending), canceled);
        co_await ours.closed();
    });
}

// sendfile(2) has no MSG_NOSIGNAL.
TEST_P(send_file_test, a_closed_peer_raises_no_sigpipe) {
    const unique_fd file = file_of(std::string(1 << 20, 'x'));
    const auto send = [&]() -> task<> {
        auto [ours, theirs] = connect_raw_local();
        theirs.close();
        EXPECT_EQ(error_of(co_await async_send_file(ours, file.get(), 0, everything)),
                  std::errc::broken_pipe);
    };
    const testing::sigpipe_watch sigpipes;
    run(send);
    EXPECT_EQ(sigpipes.delivered(), 0);

    // A SIGPIPE that was sent by another program, and is blocked, stays pending for its receiver.
    const testing::sigpipe_block blocked;
    ::raise(SIGPIPE);
    run(send);
    EXPECT_TRUE(blocked.take());
}

TEST_P(send_file_test, a_large_file_lets_others_run) {
    constexpr std::size_t size = 64 << 20;
    const unique_fd file = file_of("");
    ASSERT_EQ(::ftruncate(file.get(), size), 0);
    auto connection = connect_raw();
    auto [one, other] = testing::connected_pair();
    auto peer =
        std::async(std::launch::async, [&] { return connection.theirs.receive(size).size(); });
    run([&]() -> task<> {
        bool sent = false;
        std::size_t echoes = 0;
        auto sending = spawn([&]() -> task<> {
            EXPECT_EQ(
                (co_await async_send_file(connection.ours, file.get(), 0, everything)).value_or(0),
                size);
            sent = true;
        });
        std::array<char, 1> byte{};
        while (!sent) {
            EXPECT_TRUE(co_await one.write_some("x"));
            EXPECT_TRUE(co_await other.read_some(byte)); // an operation that needs the kernel
            ++echoes;
        }
        co_await sending;
        // There are at least 256 chunks; between two of them every other connection has its turn.
        EXPECT_GT(echoes, 60U);
    });
    EXPECT_EQ(peer.get(), size);
}

TEST_P(send_file_test, a_file_that_shrinks_is_sent_to_its_new_end) {
    const unique_fd file = file_of(std::string(8 << 20, 'x'));
    auto [ours, theirs] = connect_raw({.ours = 65536, .theirs = 65536});
    run([&]() -> task<> {
        auto sending = spawn([&]() -> task<transfer_result> {
            co_return co_await async_send_file(ours, file.get(), 0, everything);
        });
        co_await turns(10);
        EXPECT_EQ(::ftruncate(file.get(), 1), 0);
        while (!sending.done()) {
            if (theirs.peek() > 0) theirs.receive(1000);
            co_await yield();
        }
        const transfer_result outcome = co_await sending;
        EXPECT_TRUE(outcome);
        EXPECT_LT(outcome.value_or(0), 8U << 20U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, send_file_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
