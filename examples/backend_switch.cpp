// Runs the same task on every backend, prints which ones work here, and why the others do not.
// Lesson: a backend is chosen when a loop is created; nothing else in a program depends on it.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <iostream>
#include <string>

using namespace simplenet;

// Talks to itself over TCP: enough to see that the loop works.
task<result<std::string>> hello() {
    auto listener = tcp_listener::bind(endpoint::loopback(0));
    if (!listener) co_return fail(listener);
    const auto at = listener->local_endpoint(); // with the port that the kernel chose
    if (!at) co_return fail(at);
    // Both at once, because each waits for the other. The first error would stop and join the
    // other.
    auto both = co_await gather(listener->accept(), async_connect(*at));
    if (!both) co_return fail(both);
    auto& [server, client] = *both;

    if (auto sent = co_await async_write_all(client, "hello"); !sent) co_return fail(sent);
    std::string text(5, '\0');
    if (auto got = co_await async_read_exact(server, text); !got) co_return fail(got);
    co_return text;
}

//! [create]
// Creates a loop by hand. Do so where run() does not fit: to select a backend, to inspect the loop,
// or to embed it.
result<std::string> try_backend(backend which) {
    auto loop = event_loop::create({.backend = which});
    if (!loop) return fail(loop);

    result<std::string> answer;
    loop->spawn([&]() -> task<> { answer = co_await hello(); });
    loop->run(); // until no task is left
    if (!answer) return answer;
    return *answer + " over " + to_string(loop->selected_backend());
}
//! [create]

int main(int argc, char** argv) {
    example::arguments{argc, argv, "backend_switch"}.finish();

    bool automatic_works = false;
    for (const backend each : {backend::automatic, backend::epoll, backend::io_uring}) {
        std::cout << to_string(each) << ": ";
        if (const auto offered = probe_backend(each); !offered) {
            std::cout << "unavailable: " << offered.error().message() << '\n';
        } else if (const auto answer = try_backend(each); !answer) {
            std::cout << "does not work: " << answer.error().message() << '\n';
        } else {
            std::cout << "works: " << *answer << '\n';
            automatic_works |= each == backend::automatic;
        }
    }
    // SIMPLENET_BACKEND=epoll or io_uring affects only `automatic`.
    const int written = example::printed();
    return automatic_works ? written : 1;
}
