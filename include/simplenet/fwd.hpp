#pragma once
// Declarations of the library's names without definitions, for headers that only mention them. A
// declaration in a program would declare a different name, because these are in the inline
// namespace of an ABI version. Templates that need their concepts for a declaration (queued_writer,
// buffered_reader) are missing here.

#include <cstdint>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

class const_buffer;
class endpoint;
class ip_address;
class local_endpoint;
class mutable_buffer;
class unique_fd;
struct inherited_listener;
struct listen_options;
struct transfer_error;
struct write_options;
enum class errc;

namespace blocking {
class local_datagram;
class local_listener;
class local_stream;
class tcp_listener;
class tcp_stream;
class udp_socket;
} // namespace blocking

namespace nonblocking {
class local_datagram;
class local_listener;
class local_stream;
class tcp_listener;
class tcp_stream;
class udp_socket;
} // namespace nonblocking

namespace callbacks {
class buffer;
class client;
class connection;
class server;
class timer_id;
struct handlers;
} // namespace callbacks

inline namespace runtime {
class any_stream;
class async_condition_variable;
class async_event;
class async_mutex;
class async_semaphore;
class basic_server;
class duplex_stream;
class event_loop;
class event_loop_group;
class interval;
class local_datagram;
class local_listener;
class local_server;
class local_stream;
class received;
class scratch;
class signal_set;
class strand;
class task_group;
class tcp_client;
class tcp_listener;
class tcp_server;
class tcp_stream;
class thread_pool;
class udp_socket;
struct broadcast_error;
struct backoff;
struct client_event;
struct client_options;
struct connect_options;
struct connection_info;
struct event_loop_group_options;
struct frame_format;
struct group_options;
struct linger_options;
struct local_server_options;
struct loop_event;
struct loop_metrics;
struct loop_options;
struct pool_options;
struct resolve_options;
struct run_server_options;
struct server_options;
struct server_statistics;
struct shutdown_report;
struct thread_pool_options;
struct send_file_options;
struct watermarks;
enum class backend : std::uint8_t;
enum class backpressure : std::uint8_t;
enum class frame_prefix : std::uint8_t;

// Without its default argument, which is at the definition: write `task<void>`.
template <class T>
class task;
template <class T>
class join_handle;
template <class T>
class remote_handle;
template <class T>
class broadcast;
template <class T>
class channel;
template <class T>
class cross_channel;
template <class T>
class oneshot;
template <class T>
class watch;
template <class Stream>
class connection_pool;
template <class Stream>
class pooled;
} // namespace runtime

namespace testing {
class fault_script;
class manual_clock;
} // namespace testing

} // namespace simplenet::v0

#pragma GCC visibility pop
