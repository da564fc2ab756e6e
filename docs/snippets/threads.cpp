// The code of docs/usage/threads.md.

#include <simplenet/simplenet.hpp>

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

using namespace simplenet;

struct image {};
image scaled(image original);
task<> session(tcp_stream stream);

//! [group]
int serve() {
    auto made = event_loop_group::create({.name = "worker"}); // a loop for each CPU
    if (!made) {
        std::cerr << "no loops: " << made.error().message() << '\n';
        return 1;
    }
    event_loop_group group = *std::move(made);
    auto announce = [] { std::clog << "runs on a thread called worker-0\n"; };
    group[0].post(announce);

    group.stop(); // from here on posts are destroyed instead of called
    group.join(); // the tasks on all loops have ended
    return 0;
}
//! [group]

//! [spawn]
task<std::string> greeting(std::string name) {
    co_return "Hello, " + name;
}

std::string ask(event_loop_group& group) { // on a thread without a loop
    auto handle = group.next().spawn_remote(greeting("world"));
    return handle.get();
}
//! [spawn]

//! [run_on]
task<image> scale(thread_pool& pool, image original) {
    // The loop serves others while a thread of the pool computes.
    co_return co_await run_on(pool, scaled, std::move(original));
}
//! [run_on]

//! [strand]
class journal {
public:
    explicit journal(thread_pool& pool)
        : strand_{pool} {}

    void add(std::string line) { // any thread
        // Shared, because callables in a strand still run when the strand is gone.
        strand_.post([file = file_, text = std::move(line)] { *file << text << '\n'; });
    }

private:
    // Used only in the strand: no mutex.
    std::shared_ptr<std::ofstream> file_ = std::make_shared<std::ofstream>("journal.txt");
    strand strand_;
};
//! [strand]

//! [run_blocking]
task<std::string> load(std::string path) {
    auto read = [](const std::string& name) {
        std::ifstream file{name};
        return std::string{std::istreambuf_iterator<char>{file}, {}};
    };
    co_return co_await run_blocking(read, std::move(path));
}
//! [run_blocking]

//! [try_post]
bool resize_later(thread_pool& pool, image original) {
    // False: 1024 callables wait already, so refuse the request instead of making it wait, too.
    return pool.try_post([original] { static_cast<void>(scaled(original)); });
}
//! [try_post]
