// The code of docs/usage/signals.md.

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <csignal>
#include <iostream>

using namespace simplenet;
using namespace std::chrono_literals;

void reload_configuration();
task<> serve();

//! [main]
task<int> wait_a_day() {
    const auto waited = co_await async_sleep(24h);
    if (!waited) std::cout << "interrupted, tidying up\n"; // SIGINT or SIGTERM
    co_return waited ? 0 : 1;
}

int run_it() {
    return run(wait_a_day());
}
//! [main]

//! [reload]
task<> reload_on_hangup(signal_set& signals) {
    while (auto number = co_await signals.next())
        reload_configuration();
}

int run_and_reload() {
    signal_set hangups{SIGHUP}; // before any thread starts: threads inherit the mask
    auto main = [&hangups]() -> task<> {
        spawn(reload_on_hangup(hangups));
        co_await serve();
    };
    run(main());
    return 0;
}
//! [reload]

//! [off]
int leave_signals_alone() {
    run(serve(), {.handle_signals = false});
    return 0;
}
//! [off]
