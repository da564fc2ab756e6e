#include "socket/setup.hpp"

#include "ip/native.hpp"
#include "support/error_of.hpp"
#include "support/flavours.hpp"

#include <chrono>

namespace {

using namespace simplenet;
using namespace simplenet::testing;
using namespace std::chrono_literals;
namespace sys = simplenet::detail::sys;

TEST(setup_test, deadline_after_is_none_without_a_timeout_or_beyond_the_clock) {
    EXPECT_EQ(detail::deadline_after(std::nullopt), std::nullopt);
    EXPECT_EQ(detail::deadline_after(std::chrono::nanoseconds::max()), std::nullopt);
}

TEST(setup_test, deadline_after_counts_from_now) {
    const auto before = std::chrono::steady_clock::now();

    EXPECT_GE(detail::deadline_after(5s), before + 5s);
    EXPECT_GE(detail::deadline_after(-5s), before)
        << "a negative number means that no time is left";
    EXPECT_GE(detail::deadline_after(std::chrono::nanoseconds::min()), before);
}

// The port has no listener and the kernel picked the same port for the client. TCP then connects
// the socket to itself, and everything written would be read back.
TEST(setup_test, a_socket_connected_to_itself_is_reported_as_refused) {
    const unique_fd fd = or_throw(detail::open_tcp(endpoint::loopback(0), sys::mode::nonblocking));
    auto address = detail::to_native(endpoint::loopback(0));
    ASSERT_EQ(sys::bind(fd.get(), address.data(), address.size), 0);
    ASSERT_EQ(sys::getsockname(fd.get(), address.data(), address.size), 0);
    (void)sys::connect(fd.get(), address.data(), address.size);
    await(fd.get(), POLLOUT);
    auto peer = address;
    ASSERT_EQ(sys::getpeername(fd.get(), peer.data(), peer.size), 0) << "it did connect";

    EXPECT_EQ(error_of(detail::connect_outcome(fd.get())), std::errc::connection_refused);
}

TEST(setup_test, a_socket_that_never_connected_is_reported_as_not_connected) {
    const unique_fd fd = or_throw(detail::open_tcp(endpoint::loopback(0), sys::mode::nonblocking));

    EXPECT_EQ(error_of(detail::connect_outcome(fd.get())), std::errc::not_connected);
    EXPECT_EQ(error_of(detail::finish_connect(fd.get())), std::errc::not_connected);
}

TEST(setup_test, accepted_connections_have_the_requested_mode_whatever_the_listeners_is) {
    auto listener = blocking_tcp::listen();
    for (const auto waiting : {sys::mode::blocking, sys::mode::nonblocking}) {
        const auto client = connect_to<blocking_tcp>(listener);

        const unique_fd fd = or_throw(detail::accept_from(listener.native_handle(), waiting));

        EXPECT_EQ(is_nonblocking(fd.get()), waiting == sys::mode::nonblocking);
        EXPECT_TRUE(is_close_on_exec(fd.get()));
    }
}

} // namespace
