// The code in the tables of docs/usage/coming-from.md, so that it is compiled.

#include <simplenet/simplenet.hpp>
#include <simplenet/testing/manual_clock.hpp> // manual_clock, of simplenet/testing/

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <iostream>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace snippets {

task<> work();
task<result<>> step();
task<result<std::size_t>> measure();

task<> streams(tcp_stream stream, tcp_stream other) {
    std::array<std::byte, 512> buffer;
    const std::string message = "hello";
    (void)co_await async_read_exact(stream, buffer);
    (void)co_await async_write_all(stream, message);
    (void)co_await with_timeout(stream.read_some(buffer), 5s);
    (void)co_await async_copy_bidirectional(stream, other);
    (void)stream.shutdown_write();
    stream.set_idle_timeout(60s);

    buffered_reader<tcp_stream&> lines{stream};
    (void)co_await lines.read_line(4096);

    queued_writer<tcp_stream> queue{std::move(other)};
    const result<backpressure> pressure = queue.enqueue(message);
    if (pressure == backpressure::high_watermark) (void)co_await queue.writable();
    (void)co_await queue.flush();
    (void)co_await queue.graceful_shutdown();

    auto [reading, writing] = split(std::move(stream));
    auto [first, second] = duplex(65536);
}

task<result<std::size_t>> scopes() {
    spawn(work()).detach();
    (void)co_await when_all(step(), step());
    (void)co_await gather(measure(), measure());
    (void)co_await when_any(step(), step());
    (void)co_await shield(step());
    (void)co_await with_timeout(step(), 5s);

    const auto body = [](task_group& group) -> task<> {
        group.spawn(work());
        co_return;
    };
    (void)co_await with_group(body);

    auto child = spawn(measure());
    child.request_stop(); // the operation it waits for fails with operation_canceled
    (void)co_await child;

    std::stop_source source;
    (void)co_await with_stop(source.get_token(), step());

    co_await or_return(step());
    co_return co_await or_return(measure());
}

task<> others(event_loop& loop, int fd) {
    (void)co_await async_connect("example.org", 80);
    (void)co_await async_sleep(1s);
    (void)co_await async_wait_readable(fd);
    interval ticks{1s};
    (void)co_await ticks.next();
    signal_set signals{SIGINT, SIGTERM};
    (void)co_await signals.next();

    auto listener = or_throw(tcp_listener::bind(endpoint::any(7000)));
    (void)co_await listener.accept();

    async_mutex mutex;
    async_semaphore semaphore{4};
    async_event event;
    async_condition_variable changed;
    channel<int> numbers{16};
    oneshot<int> answer;
    cross_channel<int> jobs{16};
    broadcast<int> events{16};
    watch<int> limit{10};

    const auto f = [] {};
    loop.post(f);
    dump_tasks(std::cerr);
}

task<> handler(tcp_stream stream);

task<> servers(event_loop_group& group, tcp_stream stream, tcp_stream other, int file) {
    auto server = or_throw(tcp_server::listen(group, endpoint::any(7000)));
    or_throw(server.serve(handler));
    (void)co_await server.shutdown(15s);

    server_options options;
    options.accept = accept_mode::single_acceptor;
    options.balance = balance::round_robin;
    options.max_connections = 10'000;
    options.on_handler_exception = [](std::exception_ptr, void*) {};
    options.proxy = proxy_protocol::required;

    if (auto bytes = co_await stream.receive()) {
        const received head = bytes->split(4);
    }
    frame_reader<tcp_stream&> reader{stream};
    frame_writer<tcp_stream&> writer{stream};
    if (const auto frame = co_await reader.read_frame(65536)) {
        (void)co_await writer.write_frame(*frame);
    }
    (void)co_await async_send_file(stream, file, 0, 4096);

    const auto f = [] { return 1; };
    (void)co_await run_blocking(f);
    thread_pool pool;
    (void)co_await run_on(pool, f);
    (void)co_await run_on(group[1], f);
    group.next().post(f);
    (void)hand_over(group.next(), std::move(other), handler);
    (void)co_await server_stop();
}

task<> pooled(connection_pool<tcp_stream>& pool) {
    (void)co_await pool.borrow("192.0.2.7:5432");
}

using callbacks::connection_ptr;

void called(const connection_ptr& connection, callbacks::buffer& input) {
    std::string message = input.retrieve_all_as_string();
    if (input.readable() >= 4) (void)input.read_u32();
    if (const char* end = input.find_crlf()) input.retrieve_until(end);
    (void)input.peek();
    input.append(message);
    input.prepend_u32(7);
    connection->send(message);
    connection->send(std::move(message));
    connection->shutdown();
    connection->close();
    connection->set_no_delay(true);
    connection->set_high_water_mark(65536);
    connection->set_limit(1'000'000);
    connection->stop_reading();
    connection->start_reading();
    connection->context() = 7;
    const bool here = event_loop::current() == &connection->loop();
    if (here && connection->is_connected()) (void)connection->peer();
}

void as_in_muduo(const callbacks::handlers& given) {
    auto group = or_throw(event_loop_group::create({.loops = 4}));
    event_loop& loop = group.next();
    callbacks::handlers handlers = given;
    handlers.on_message = called;
    handlers.on_connection = [](const connection_ptr&) {};
    handlers.on_high_water_mark = [](const connection_ptr&, std::size_t) {};
    callbacks::server server{group, endpoint::any(7000), handlers};
    server.start();
    server.stop(10s);
    callbacks::client client{loop, "example.org", 80, handlers};
    client.connect();
    client.disconnect();
    const auto f = [] {};
    loop.post(f);
    callbacks::run_after(loop, 5s, f);
    const auto timer = callbacks::run_every(loop, 1s, f);
    callbacks::cancel(loop, timer);
}

void program() {
    run(work());
    auto made = event_loop::create();
    event_loop loop = or_throw(std::move(made));
    loop.run();
}

} // namespace snippets
