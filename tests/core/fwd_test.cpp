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
    SUCCEED() << "the compiler checks the rest";
    static_assert(sizeof(any_stream) != 0);
    static_assert(sizeof(async_condition_variable) != 0);
    static_assert(sizeof(async_event) != 0);
    static_assert(sizeof(async_mutex) != 0);
    static_assert(sizeof(async_semaphore) != 0);
    static_assert(sizeof(backend) != 0);
    static_assert(sizeof(backoff) != 0);
    static_assert(sizeof(backpressure) != 0);
    static_assert(sizeof(basic_server) != 0);
    static_assert(sizeof(broadcast<int>) != 0);
    static_assert(sizeof(broadcast_error) != 0);
    static_assert(sizeof(channel<int>) != 0);
    static_assert(sizeof(client_event) != 0);
    static_assert(sizeof(client_options) != 0);
    static_assert(sizeof(connect_options) != 0);
    static_assert(sizeof(connection_info) != 0);
    static_assert(sizeof(const_buffer) != 0);
    static_assert(sizeof(cross_channel<int>) != 0);
    static_assert(sizeof(duplex_stream) != 0);
    static_assert(sizeof(endpoint) != 0);
    static_assert(sizeof(errc) != 0);
    static_assert(sizeof(event_loop) != 0);
    static_assert(sizeof(frame_format) != 0);
    static_assert(sizeof(frame_prefix) != 0);
    static_assert(sizeof(group_options) != 0);
    static_assert(sizeof(inherited_listener) != 0);
    static_assert(sizeof(interval) != 0);
    static_assert(sizeof(ip_address) != 0);
    static_assert(sizeof(join_handle<>) != 0);
    static_assert(sizeof(linger_options) != 0);
    static_assert(sizeof(listen_options) != 0);
    static_assert(sizeof(local_datagram) != 0);
    static_assert(sizeof(local_endpoint) != 0);
    static_assert(sizeof(local_listener) != 0);
    static_assert(sizeof(local_server) != 0);
    static_assert(sizeof(local_server_options) != 0);
    static_assert(sizeof(local_stream) != 0);
    static_assert(sizeof(loop_event) != 0);
    static_assert(sizeof(loop_metrics) != 0);
    static_assert(sizeof(loop_options) != 0);
    static_assert(sizeof(mutable_buffer) != 0);
    static_assert(sizeof(oneshot<int>) != 0);
    static_assert(sizeof(pool_options) != 0);
    static_assert(sizeof(received) != 0);
    static_assert(sizeof(remote_handle<>) != 0);
    static_assert(sizeof(resolve_options) != 0);
    static_assert(sizeof(run_server_options) != 0);
    static_assert(sizeof(scratch) != 0);
    static_assert(sizeof(send_file_options) != 0);
    static_assert(sizeof(server_options) != 0);
    static_assert(sizeof(server_statistics) != 0);
    static_assert(sizeof(shutdown_report) != 0);
    static_assert(sizeof(signal_set) != 0);
    static_assert(sizeof(simplenet::blocking::local_datagram) != 0);
    static_assert(sizeof(simplenet::blocking::tcp_stream) != 0);
    static_assert(sizeof(simplenet::callbacks::buffer) != 0);
    static_assert(sizeof(simplenet::callbacks::client) != 0);
    static_assert(sizeof(simplenet::callbacks::connection) != 0);
    static_assert(sizeof(simplenet::callbacks::handlers) != 0);
    static_assert(sizeof(simplenet::callbacks::server) != 0);
    static_assert(sizeof(simplenet::callbacks::timer_id) != 0);
    static_assert(sizeof(simplenet::nonblocking::udp_socket) != 0);
    static_assert(sizeof(simplenet::testing::fault_script) != 0);
    static_assert(sizeof(simplenet::testing::manual_clock) != 0);
    static_assert(sizeof(task<>) != 0);
    static_assert(sizeof(task_group) != 0);
    static_assert(sizeof(tcp_client) != 0);
    static_assert(sizeof(tcp_listener) != 0);
    static_assert(sizeof(tcp_server) != 0);
    static_assert(sizeof(tcp_stream) != 0);
    static_assert(sizeof(transfer_error) != 0);
    static_assert(sizeof(udp_socket) != 0);
    static_assert(sizeof(unique_fd) != 0);
    static_assert(sizeof(watch<int>) != 0);
    static_assert(sizeof(watermarks) != 0);
    static_assert(sizeof(write_options) != 0);
    static_assert(std::same_as<decltype(serve), task<>(tcp_stream, const endpoint&)>);
    static_assert(std::same_as<decltype(why), errc(const event_loop&, backend)>);
}

} // namespace
} // namespace program
