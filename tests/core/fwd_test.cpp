// First include of the file, as in a header of a program.
#include <simplenet/fwd.hpp>

namespace program {

simplenet::task<void> serve(simplenet::tcp_stream client, const simplenet::endpoint& from);
simplenet::errc why(const simplenet::event_loop&, simplenet::backend);
void look_after(simplenet::join_handle<int>&, simplenet::channel<int>*, simplenet::task_group&);

} // namespace program

#include <simplenet/simplenet.hpp>
#include <simplenet/testing/faulty_stream.hpp>
#include <simplenet/testing/manual_clock.hpp>

#include <concepts>
#include <type_traits>

#include <gtest/gtest.h>

namespace program {
namespace {

TEST(fwd_test, declares_the_names_that_the_headers_define) {
    // Each class is complete and unambiguous: a second declaration would be ambiguous here.
    using namespace simplenet;
    EXPECT_TRUE((sizeof(const_buffer) + sizeof(endpoint) + sizeof(ip_address) +
                 sizeof(local_endpoint) + sizeof(mutable_buffer) + sizeof(unique_fd) +
                 sizeof(inherited_listener) + sizeof(listen_options) + sizeof(transfer_error) +
                 sizeof(write_options) +
                 sizeof(errc)) != 0);
    EXPECT_TRUE((sizeof(simplenet::blocking::tcp_stream) != 0 &&
                 sizeof(simplenet::nonblocking::udp_socket) != 0 &&
                 sizeof(simplenet::blocking::local_datagram) != 0));
    EXPECT_TRUE(
        (sizeof(any_stream) + sizeof(async_condition_variable) + sizeof(async_event) +
         sizeof(async_mutex) + sizeof(async_semaphore) + sizeof(duplex_stream) +
         sizeof(event_loop) + sizeof(interval) + sizeof(local_datagram) + sizeof(local_listener) +
         sizeof(local_stream) + sizeof(received) + sizeof(signal_set) + sizeof(task_group) +
         sizeof(tcp_listener) + sizeof(tcp_stream) + sizeof(udp_socket) + sizeof(backoff) +
         sizeof(client_event) + sizeof(client_options) + sizeof(tcp_client) +
         sizeof(connect_options) + sizeof(group_options) + sizeof(linger_options) +
         sizeof(loop_metrics) + sizeof(loop_options) + sizeof(frame_format) + sizeof(frame_prefix) +
         sizeof(resolve_options) + sizeof(watermarks) + sizeof(backend) + sizeof(backpressure)) !=
        0);
    EXPECT_TRUE((sizeof(task<>) + sizeof(join_handle<>) + sizeof(remote_handle<>) +
                 sizeof(broadcast<int>) + sizeof(channel<int>) + sizeof(cross_channel<int>) +
                 sizeof(oneshot<int>) + sizeof(watch<int>) + sizeof(broadcast_error)) != 0);
    EXPECT_TRUE(
        (sizeof(simplenet::testing::fault_script) + sizeof(simplenet::testing::manual_clock)) != 0);
    static_assert(std::same_as<decltype(serve), task<>(tcp_stream, const endpoint&)>);
    static_assert(std::same_as<decltype(why), errc(const event_loop&, backend)>);
}

} // namespace
} // namespace program
