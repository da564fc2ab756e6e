// An echo server that replaces itself and refuses nobody: at SIGHUP it starts its program again,
// which takes the listening sockets over, and then serves its clients to their end. Lesson:
// duplicate_listeners() gives the sockets away, inherited_listeners() takes them.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

constexpr int first_listener = 3; // sd_listen_fds(3)
char** own_arguments = nullptr;   // of main()

//! [successor]
/// Starts this program again with `listeners`, in the protocol of sd_listen_fds(3). Blocks until it
/// serves. False: it did not within ten seconds, and is gone.
bool start_successor(std::vector<unique_fd> listeners) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) return false;
    const unique_fd answer{ready[0]};
    listeners.emplace_back(ready[1]); // passed on with them, as the last one

    // Everything that allocates comes before fork(2): this process has other threads.
    const int count = static_cast<int>(listeners.size());
    std::array<char, 32> own_pid{"LISTEN_PID="};
    const std::string names = "LISTEN_FDS=" + std::to_string(count - 1);
    const std::string notify = "READY_FD=" + std::to_string(first_listener + count - 1);
    std::vector<char*> variables{own_pid.data(), const_cast<char*>(names.c_str()),
                                 const_cast<char*>(notify.c_str())};
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view text{*each};
        if (!text.starts_with("LISTEN_") && !text.starts_with("READY_FD=")) {
            variables.push_back(*each);
        }
    }
    variables.push_back(nullptr);

    const pid_t child = ::fork();
    if (child == 0) {
        sigset_t none;
        ::sigemptyset(&none); // the threads of the library block signals
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        // First out of the way, then to their numbers, where dup2(2) leaves them open on exec.
        for (auto& each : listeners) {
            const int away = ::fcntl(each.get(), F_DUPFD_CLOEXEC, first_listener + count);
            if (away < 0) ::_exit(127);
            each.reset(away);
        }
        for (int at = 0; at < count; ++at)
            ::dup2(listeners[static_cast<std::size_t>(at)].get(), first_listener + at);
        char* const end = own_pid.data() + own_pid.size();
        *std::to_chars(own_pid.data() + 11, end - 1, ::getpid()).ptr = '\0';
        ::execve("/proc/self/exe", own_arguments, variables.data());
        ::_exit(127);
    }
    listeners.clear();
    if (child < 0) return false;
    pollfd waiting{.fd = answer.get(), .events = POLLIN, .revents = 0};
    char byte = 0;
    if (::poll(&waiting, 1, 10'000) == 1 && ::read(answer.get(), &byte, 1) == 1) return true;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return false;
}

/// Tells the predecessor, if there is one, that it may go.
void report_ready() {
    const char* const number = std::getenv("READY_FD");
    if (number == nullptr) return;
    const unique_fd predecessor{std::atoi(number)};
    std::ignore = ::write(predecessor.get(), "!", 1);
}
//! [successor]

task<> serve_client(tcp_stream client) {
    std::array<std::byte, 4096> buffer;
    for (bool answered = false;; answered = true) {
        // Between two messages is a good time to send a client to the successor. A client that was
        // just accepted gets its first answer.
        if (answered) {
            const auto next = co_await when_any(client.readable(), server_stop());
            if (next.index == 1) co_return;
        }
        const auto count = co_await client.read_some(buffer);
        if (!count) co_return;
        const const_buffer reply{buffer.data(), *count};
        if (!co_await async_write_all(client, reply)) co_return;
    }
}

//! [listen]
/// Takes the sockets that this process was started with, or listens itself.
result<tcp_server> open_server(event_loop_group& group, const endpoint& at) {
    auto inherited = inherited_listeners();
    if (!inherited) return fail(inherited);
    if (inherited->empty()) return tcp_server::listen(group, at);
    std::vector<nonblocking::tcp_listener> listeners;
    for (auto& each : *inherited) {
        auto adopted = nonblocking::tcp_listener::adopt(std::move(each.socket));
        if (!adopted) return fail(adopted);
        listeners.push_back(*std::move(adopted));
    }
    return tcp_server::adopt(group, std::move(listeners));
}
//! [listen]

//! [serve]
task<result<>> serve(endpoint at, backend used) {
    signal_set signals{SIGHUP, SIGINT, SIGTERM};
    auto group = event_loop_group::create({.loop = {.backend = used}});
    if (!group) co_return fail(group);
    auto server = open_server(*group, at);
    if (!server) co_return fail(server);
    if (const auto serves = server->serve(serve_client); !serves) co_return serves;
    example::announce(*server, (*group)[0].selected_backend());
    std::cout << "process " << ::getpid() << std::endl;
    report_ready();

    result<> ended;
    while (true) {
        const auto number = co_await signals.next();
        if (!number) ended = fail(number); // its clients are served to their end nevertheless
        if (!number || *number != SIGHUP) break;
        auto listeners = server->duplicate_listeners();
        bool replaced = false; // without descriptors for a successor, this process continues, too
        if (listeners) {
            replaced = co_await run_blocking(start_successor, *std::move(listeners));
        }
        if (replaced) break;
        std::cerr << "the successor does not start: this process continues" << std::endl;
    }
    co_await server->shutdown(10s);
    co_return ended;
}
//! [serve]

} // namespace

int main(int argc, char** argv) {
    own_arguments = argv;
    const auto given = example::read_server_options(argc, argv, "rolling_restart");
    try {
        const auto ended = run(serve(given.at, given.backend), {.backend = given.backend});
        if (ended || ended.error() == std::errc::operation_canceled) return 0; // stopped early
        return example::failed("cannot serve", ended.error());
    } catch (const std::system_error& error) {
        return example::failed("cannot make an event loop", error.code());
    }
}
