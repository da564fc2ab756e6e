#include <simplenet/blocking/local_stream.hpp>

#include "ip/native.hpp"
#include "support/error_of.hpp"
#include "support/flavours.hpp"
#include "support/signal_storm.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <vector>

namespace {

using namespace simplenet;
using namespace simplenet::testing;
using namespace std::chrono_literals;
using blocking::local_stream;

/// A listener whose backlog is full.
class busy_listener {
public:
    busy_listener() {
        for (int tries = 0; tries < 16; ++tries) {
            auto stream = nonblocking::local_stream::connect(endpoint_);
            if (!stream) {
                EXPECT_EQ(stream.error(), std::errc::operation_would_block);
                return;
            }
            waiting_.push_back(*std::move(stream));
        }
        ADD_FAILURE() << "the backlog does not fill";
    }

    const local_endpoint& endpoint() const { return endpoint_; }
    /// Makes room for one connection.
    void accept() { EXPECT_TRUE(listener_.accept()); }

private:
    blocking::local_listener listener_ = blocking_local::listen({.backlog = 1});
    local_endpoint endpoint_ = blocking_local::address_of(listener_);
    std::vector<nonblocking::local_stream> waiting_;
};

TEST(local_stream_test, connect_reports_a_path_that_does_not_exist) {
    const temporary_directory directory;
    const auto at = or_throw(local_endpoint::parse(directory / "nothing"));

    EXPECT_EQ(error_of(local_stream::connect(at)), std::errc::no_such_file_or_directory);
}

TEST(local_stream_test, connect_reports_a_listener_of_another_type) {
    const temporary_directory directory;
    const auto at = or_throw(local_endpoint::parse(directory / "datagrams"));
    const unique_fd other{detail::sys::socket(AF_UNIX, SOCK_DGRAM, 0, detail::sys::mode::blocking)};
    const auto name = detail::to_native(at);
    ASSERT_EQ(detail::sys::bind(other.get(), name.data(), name.size), 0);

    EXPECT_EQ(error_of(local_stream::connect(at)), std::errc::wrong_protocol_type);
}

TEST(local_stream_test, connect_with_a_timeout_leaves_a_stream_without_timeouts) {
    auto listener = blocking_local::listen();

    auto client = or_throw(local_stream::connect(blocking_local::address_of(listener), 10s));

    timeval limit{.tv_sec = 1, .tv_usec = 1};
    EXPECT_EQ(detail::sys::get_option(client.native_handle(), SOL_SOCKET, SO_SNDTIMEO, limit), 0);
    EXPECT_EQ(limit.tv_sec, 0);
    EXPECT_EQ(limit.tv_usec, 0);
    EXPECT_FALSE(is_nonblocking(client.native_handle()));
}

TEST(local_stream_test, connect_gives_up_at_its_deadline_and_not_earlier) {
    const busy_listener busy;
    const auto start = std::chrono::steady_clock::now();

    EXPECT_EQ(error_of(local_stream::connect(busy.endpoint(), 30ms)), errc::deadline_exceeded);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
}

TEST(local_stream_test, connect_with_a_timeout_of_zero_hardly_waits) {
    const busy_listener busy;

    EXPECT_EQ(error_of(local_stream::connect(busy.endpoint(), 0s)), errc::deadline_exceeded);
    EXPECT_EQ(error_of(local_stream::connect(busy.endpoint(), -1s)), errc::deadline_exceeded);
}

TEST(local_stream_test, connect_keeps_its_deadline_when_interrupted) {
    const busy_listener busy;
    const auto start = std::chrono::steady_clock::now();
    const signal_storm storm{[] {}};

    EXPECT_EQ(error_of(local_stream::connect(busy.endpoint(), 30ms)), errc::deadline_exceeded);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
}

TEST(local_stream_test, connect_waits_for_room_in_the_backlog_despite_signals) {
    for (const std::optional<std::chrono::nanoseconds> timeout :
         {std::optional<std::chrono::nanoseconds>{}, {20s}}) {
        busy_listener busy;
        const signal_storm storm{[&] { busy.accept(); }};

        EXPECT_TRUE(local_stream::connect(busy.endpoint(), timeout));
    }
}

TEST(local_stream_test, a_pair_is_connected_and_blocking) {
    auto [left, right] = or_throw(local_stream::pair());

    EXPECT_EQ(left.write_all("hello"), 5U);
    EXPECT_EQ(read_text(right, 5), "hello");
    for (const int fd : {left.native_handle(), right.native_handle()}) {
        EXPECT_TRUE(is_close_on_exec(fd));
        EXPECT_FALSE(is_nonblocking(fd));
    }
}

} // namespace
