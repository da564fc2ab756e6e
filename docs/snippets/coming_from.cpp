// The code in the tables of docs/usage/coming-from.md, so that it is compiled.

#include <simplenet/simplenet.hpp>
#include <simplenet/testing/manual_clock.hpp> // manual_clock, of simplenet/testing/

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
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

void program() {
    run(work());
    auto made = event_loop::create();
    event_loop loop = or_throw(std::move(made));
    loop.run();
}

} // namespace snippets
