// The program to which run_signals_test sends signals: signals_helper <what> <backend>.

#include <simplenet/simplenet.hpp>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string_view>
#include <thread>

#include <csignal>
#include <pthread.h>
#include <unistd.h>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

constexpr int stopped = 3;

loop_options options;

void say(std::string_view text) {
    std::cout << text << std::endl; // flushed, because the test waits for it
}

bool is_default(int number) {
    struct sigaction now{};
    ::sigaction(number, nullptr, &now);
    return now.sa_handler == SIG_DFL;
}

bool is_blocked(int number) {
    sigset_t now;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return ::sigismember(&now, number) == 1;
}

void say_what_is_left() {
    const bool clean =
        is_default(SIGINT) && is_default(SIGTERM) && !is_blocked(SIGINT) && !is_blocked(SIGTERM);
    say(clean ? "restored" : "not restored");
}

/// Runs until it is stopped, and reports that.
task<int> sleeper() {
    say("ready");
    const auto slept = co_await async_sleep(1h);
    say(slept ? "slept" : slept.error().message());
    co_return stopped;
}

int stop() {
    const int status = run(sleeper(), options);
    say_what_is_left();
    return status;
}

int twice() {
    run(sleeper(), options);
    return stop();
}

task<int> deaf_sleeper() {
    say("ready");
    (void)co_await async_sleep(1h);
    say("stopping");
    (void)co_await shield(async_sleep(1h));
    co_return 0;
}

int deaf() {
    return run(deaf_sleeper(), options);
}

task<int> spin() {
    say("ready");
    for (;;)
        co_await yield();
}

task<int> hang() {
    say("ready");
    for (;;)
        ::usleep(1000); // the loop does not run
    co_return 0;
}

void answer(int) {
    static_cast<void>(!::write(STDOUT_FILENO, "mine\n", 5));
}

int own_handler() {
    std::signal(SIGTERM, answer);
    const int status = run(sleeper(), options);
    say(is_default(SIGTERM) ? "lost" : "kept");
    return status;
}

task<int> replacing_sleeper() {
    std::signal(SIGINT, answer);
    co_return co_await sleeper();
}

int replaced() {
    const int status = run(replacing_sleeper(), options);
    say(is_default(SIGINT) ? "lost" : "kept");
    say(is_default(SIGTERM) ? "restored" : "not restored");
    return status;
}

int ignored() {
    std::signal(SIGINT, SIG_IGN);
    return run(sleeper(), options);
}

int off() {
    options.handle_signals = false;
    return stop();
}

int other_thread() {
    int status = 0;
    std::thread{[&] { status = stop(); }}.join();
    return status;
}

int from_thread() {
    std::thread sender;
    auto main = [&]() -> task<int> {
        sender = std::thread{[] { ::pthread_kill(::pthread_self(), SIGTERM); }};
        co_return co_await sleeper();
    };
    const int status = run(main(), options);
    sender.join();
    say_what_is_left();
    return status;
}

task<> slow_to_clean() {
    (void)co_await async_sleep(1h);
    say("ready");
    static_cast<void>(std::cin.get()); // waits until the signal has come
    say("cleaned");
}

int after() {
    auto main = []() -> task<int> {
        spawn(slow_to_clean());
        co_await yield();
        co_await yield();
        co_return 0;
    };
    run(main(), options);
    say("survived");
    return 0;
}

task<int> receive(signal_set& signals) {
    say("ready");
    while (const auto number = co_await signals.next()) {
        say(*number == SIGINT ? "SIGINT" : "SIGTERM");
        if (*number == SIGTERM) co_return 0;
    }
    co_return stopped;
}

int set_inside() {
    auto main = []() -> task<int> {
        signal_set signals{SIGINT, SIGTERM};
        co_return co_await receive(signals);
    };
    const int status = run(main(), options);
    say_what_is_left();
    return status;
}

int set_outside() {
    int status = 0;
    {
        signal_set signals{SIGINT, SIGTERM};
        status = run(receive(signals), options);
    }
    say_what_is_left();
    return status;
}

int set_dropped() {
    {
        const signal_set signals{SIGTERM};
        say("ready");
        static_cast<void>(std::cin.get());
    }
    say("survived");
    return 0;
}

} // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    options.backend =
        arguments[2] == std::string_view{"epoll"} ? backend::epoll : backend::io_uring;
    ::alarm(60);
    const std::map<std::string_view, std::function<int()>> all{
        {"stop", stop},
        {"twice", twice},
        {"deaf", deaf},
        {"spin", [] { return run(spin(), options); }},
        {"hang", [] { return run(hang(), options); }},
        {"own_handler", own_handler},
        {"replaced", replaced},
        {"ignored", ignored},
        {"off", off},
        {"other_thread", other_thread},
        {"from_thread", from_thread},
        {"after", after},
        {"set_inside", set_inside},
        {"set_outside", set_outside},
        {"set_dropped", set_dropped},
    };
    return all.at(arguments[1])();
}
