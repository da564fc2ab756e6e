// The code of docs/usage/coroutines-and-scopes.md.

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace simplenet;
using namespace std::chrono_literals;

//! [task]
task<result<std::string>> ask(endpoint server, std::string question) {
    auto stream = co_await async_connect(server);
    if (!stream) co_return fail(stream);
    if (auto sent = co_await async_write_all(*stream, question); !sent) co_return fail(sent);

    std::string answer(4, '\0');
    if (auto got = co_await async_read_exact(*stream, answer); !got) co_return fail(got);
    co_return answer;
}
//! [task]

//! [or_return]
task<result<std::string>> ask_briefly(endpoint server, std::string question) {
    tcp_stream stream = co_await or_return(async_connect(server));
    co_await or_return(async_write_all(stream, question));

    std::string answer(4, '\0');
    co_await or_return(with_timeout(async_read_exact(stream, answer), 5s));
    co_return answer;
}
//! [or_return]

task<result<>> refresh(endpoint server);
task<> heartbeat();
void poll_once();
task<int> measure();

//! [group]
task<result<>> refresh_all(const std::vector<endpoint>& servers) {
    co_return co_await with_group([&](task_group& group) -> task<> {
        for (const endpoint& each : servers)
            group.spawn(refresh(each)); // starts in the next turn of the loop
        co_return;
    }); // every child has ended here
}
//! [group]

//! [limit]
task<result<>> refresh_all_gently(const std::vector<endpoint>& servers) {
    co_return co_await with_group({.limit = 10}, [&](task_group& group) -> task<> {
        for (const endpoint& each : servers)
            group.spawn(refresh(each)); // the eleventh waits until one has ended
        co_return;
    });
}
//! [limit]

//! [spawn]
task<> measure_beside_a_heartbeat() {
    join_handle<> beating = spawn(heartbeat()); // starts in the next turn

    std::cout << co_await measure() << '\n';

    beating.request_stop(); // its operations fail from now on
    co_await beating;       // now it has ended
}
//! [spawn]

//! [lambda]
task<> start_reporting(std::string name) {
    // The callable moves into the child and lives as long as it: the captures are valid to the end.
    auto report = [name = std::move(name)]() -> task<> {
        interval every{1s};
        while (co_await every.next())
            std::cout << name << " is alive\n";
    };
    spawn(std::move(report));
    co_return;
}
//! [lambda]

task<> together(endpoint here, endpoint there) {
    //! [when_all]
    // Both run to their end; each has its own result.
    auto [near, far] = co_await when_all(ask(here, "ping"), ask(there, "ping"));
    if (near && far) std::cout << *near << *far << '\n';
    //! [when_all]

    //! [gather]
    // One result for both: an error in one stops the other.
    auto both = co_await gather(ask(here, "ping"), ask(there, "ping"));
    if (both) std::cout << std::get<0>(*both) << std::get<1>(*both) << '\n';
    //! [gather]

    //! [when_any]
    // The first to end wins; the other is stopped and joined.
    auto first = co_await when_any(ask(here, "ping"), ask(there, "ping"));
    std::cout << (first.index == 0 ? "here" : "there") << " was faster\n";
    //! [when_any]
}

//! [gcc12]
task<result<>> refresh_one(std::string host, std::vector<endpoint> addresses) {
    auto body = [host, addresses](task_group& group) -> task<> {
        std::cout << "refreshing " << host << '\n';
        for (const endpoint& each : addresses)
            group.spawn(refresh(each));
        co_return;
    };
    co_return co_await with_group(body); // named first: GCC 12 destroys an unnamed one twice
}
//! [gcc12]

//! [gcc12 loop]
task<> keep_polling() {
    while (true) {
        co_await yield();
        poll_once();
        const bool stop = co_await this_task::stop_requested(); // named first
        if (stop) co_return;
    }
}
//! [gcc12 loop]

//! [yield]
task<long> sum_of_squares(long count) {
    long sum = 0;
    for (long each = 0; each < count; ++each) {
        sum += each * each;
        if (each % 10'000 == 0) co_await yield(); // let the others run
    }
    co_return sum;
}
//! [yield]

//! [run_on]
result<std::string> report_of(int month); // takes a while

task<> answer_with_a_report(event_loop& other, tcp_stream stream, int month) {
    const auto text = co_await run_on(other, report_of, month); // on the other thread
    if (!text) co_return;                                       // stopped, for example
    (void)co_await async_write_all(stream, *text);              // back on this thread
}
//! [run_on]

//! [spawn_remote]
void tell(event_loop& other, std::string host) { // on any thread
    auto refreshing = other.spawn_remote(
        [](std::string name) -> task<> {
            auto addresses = co_await async_resolve(name, 80);
            std::cout << name << ": " << (addresses ? addresses->size() : 0) << " addresses\n";
        },
        std::move(host));
    refreshing.get(); // blocks: only for threads without a loop; with a loop, co_await it
}
//! [spawn_remote]
