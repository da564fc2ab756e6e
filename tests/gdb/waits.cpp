// The program that gdb_test.py examines: tasks that wait, and then the end of the process.

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstdlib>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

task<result<>> reads(tcp_stream& stream) {
    std::array<char, 8> buffer{};
    co_await or_return(with_timeout(stream.read_some(buffer), 1h)); // line of the read
    co_return result<>{};
}

task<> connection(tcp_stream stream) {
    this_task::set_name("connection");
    (void)co_await reads(stream); // line of its parent
}

[[gnu::noinline]] void look(task<>& unstarted, join_handle<>& joined, result<int>& good,
                            result<int>& bad, event_loop& loop) {
    asm volatile(""
                 :
                 : "r"(&unstarted), "r"(&joined), "r"(&good), "r"(&bad), "r"(&loop)
                 : "memory");
    std::abort();
}

task<> main_task() {
    this_task::set_name("main");
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    auto client = or_throw(co_await async_connect(*listener.local_endpoint()));
    join_handle<> reading = spawn(connection(or_throw(co_await listener.accept())));
    join_handle<> sleeping = spawn([]() -> task<> { (void)co_await async_sleep(1h); });
    co_await yield();
    co_await yield();

    task<> unstarted = connection(std::move(client));
    result<int> good = 42;
    result<int> bad = fail(errc::queue_full);
    look(unstarted, sleeping, good, bad, *event_loop::current());
}

} // namespace

int main() {
    run(main_task());
}
