// relay_load MIB COMMAND...: sends MIB through a relay and checks every byte that arrives. In
// COMMAND, {listen} is the port on which the relay must listen and {to} the port to connect to.
// Prints the CPU seconds of the relay and the time of the transfer.

#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/blocking/tcp_stream.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace simplenet;

namespace {

/// One MiB in which no two parts look alike, twice, so that any offset can be compared.
std::vector<char> pattern() {
    std::vector<char> bytes(2U << 20U);
    std::uint32_t state = 1;
    for (std::size_t at = 0; at < bytes.size() / 2; ++at) {
        state = state * 1664525U + 1013904223U;
        bytes[at] = bytes[at + bytes.size() / 2] = static_cast<char>(state >> 24U);
    }
    return bytes;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    const auto at = text.find(what);
    return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

pid_t start(const std::vector<std::string>& command) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    std::vector<char*> words;
    for (const std::string& word : command)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    static_cast<void>(!std::freopen("/dev/null", "w", stdout));
    ::execvp(words[0], words.data());
    std::_Exit(127);
}

blocking::tcp_stream connect_when_there(std::uint16_t port) {
    // The relay does not report when it listens, so this retries for 10 s.
    for (int tries = 0; tries < 2000; ++tries) {
        if (auto made = blocking::tcp_stream::connect(endpoint::loopback(port)))
            return *std::move(made);
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    std::fprintf(stderr, "relay_load: nobody listens on port %u\n", unsigned{port});
    std::exit(1);
}

std::size_t check_all(blocking::tcp_stream from, const std::vector<char>& expected) {
    std::vector<char> buffer(1U << 20U);
    std::size_t total = 0;
    while (const auto count = from.read_some(buffer)) {
        if (std::memcmp(buffer.data(), expected.data() + total % buffer.size(), *count) != 0) {
            std::fprintf(stderr, "a wrong byte after %zu\n", total);
            std::exit(1);
        }
        total += *count;
    }
    return total;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::size_t mib = std::strtoul(argv[1], nullptr, 10);
    const auto bytes = pattern();
    auto sink = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
    const auto to = or_throw(sink.local_endpoint()).port();
    const auto listen = [] { // free again after this
        auto probe = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
        return or_throw(probe.local_endpoint()).port();
    }();
    std::vector<std::string> command;
    for (int at = 2; at < argc; ++at) {
        command.push_back(replaced(replaced(argv[at], "{listen}", std::to_string(listen)), "{to}",
                                   std::to_string(to)));
    }
    const pid_t relay = start(command);
    auto source = connect_when_there(listen);

    const auto begin = std::chrono::steady_clock::now();
    std::size_t arrived = 0;
    std::thread checking{[&] { arrived = check_all(or_throw(sink.accept()), bytes); }};
    for (std::size_t sent = 0; sent < mib; ++sent)
        or_throw(source.write_all(const_buffer{bytes.data(), bytes.size() / 2}));
    or_throw(source.shutdown_write());
    checking.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    source.close();

    ::kill(relay, SIGTERM);
    rusage used{};
    ::wait4(relay, nullptr, 0, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    std::printf("cpu %.2f (user %.2f, system %.2f)  wall %.2f s  %s\n",
                seconds(used.ru_utime) + seconds(used.ru_stime), seconds(used.ru_utime),
                seconds(used.ru_stime), took.count(),
                arrived == mib << 20U ? "every byte arrived" : "BYTES ARE MISSING");
    return arrived == mib << 20U ? 0 : 1;
}
