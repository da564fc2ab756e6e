// simulate: runs scenarios from seeds, and prints the first failure with the command that replays
// it.

#include "simulation/simulation.hpp"

#include <simplenet/io/loop_options.hpp>

#include <charconv>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

namespace {

using namespace simplenet;
using namespace simplenet::simulation;

/// For the signal handler.
char replay_command[256] = "";
char program[160] = "simulate";

void on_fatal_signal(int number) {
    static_cast<void>(
        !::write(STDERR_FILENO, replay_command, std::string_view{replay_command}.size()));
    std::signal(number, SIG_DFL);
    std::raise(number);
}

void note_command(const scenario& what, std::uint64_t seed) {
    std::snprintf(replay_command, sizeof replay_command,
                  "replay: %s --scenario %s --first %" PRIu64 " --trace\n", program, what.name,
                  seed);
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

int usage() {
    std::fprintf(
        stderr,
        "usage: %s [--seeds N] [--first SEED] [--scenario NAME] [--trace] [--hash] [--list]\n",
        program);
    return 2;
}

} // namespace

int main(int count, char** arguments) {
    std::snprintf(program, sizeof program, "%s", arguments[0]);
    std::uint64_t seeds = 0;
    std::uint64_t first = 1;
    std::string_view only;
    bool trace = false;
    bool hashes = false;
    for (int at = 1; at < count; ++at) {
        const std::string_view name = arguments[at];
        if (name == "--list") {
            for (const scenario& each : scenarios())
                std::puts(each.name);
            return 0;
        }
        if (name == "--trace") {
            trace = true;
            continue;
        }
        if (name == "--hash") {
            hashes = true;
            continue;
        }
        if (at + 1 == count) return usage();
        const std::string_view value = arguments[++at];
        if (name == "--scenario") {
            only = value;
            continue;
        }
        const auto parsed = number(value);
        if (!parsed) return usage();
        if (name == "--seeds") {
            seeds = *parsed;
        } else if (name == "--first") {
            first = *parsed;
        } else {
            return usage();
        }
    }
    if (seeds == 0) seeds = trace ? 1 : 1000;

    for (const int each : {SIGABRT, SIGSEGV, SIGALRM, SIGBUS, SIGFPE})
        std::signal(each, on_fatal_signal);

    const auto began = std::chrono::steady_clock::now();
    std::uint64_t runs = 0;
    std::uint64_t events = 0;
    std::chrono::nanoseconds simulated{0};
    std::uint64_t all = 0;
    bool known = false;
    for (std::uint64_t seed = first; seed - first < seeds; ++seed) {
        for (const scenario& each : scenarios()) {
            if (!only.empty() && only != each.name) continue;
            known = true;
            note_command(each, seed);
            ::alarm(20); // for a spin without simulated time
            const outcome what = simulate(each, seed, backend::epoll, trace);
            if (trace) std::fputs(what.lines.c_str(), stdout);
            if (!what.failure.empty()) {
                std::fflush(stdout);
                std::fprintf(stderr,
                             "seed %" PRIu64 " of %s fails after %.3f ms of its time: %s\n%s", seed,
                             each.name, static_cast<double>(what.elapsed.count()) / 1e6,
                             what.failure.c_str(), replay_command);
                return 1;
            }
            if (trace || hashes) {
                std::printf("%s seed %" PRIu64 ": %016" PRIx64 " after %" PRIu64 " events\n",
                            each.name, seed, what.hash, what.events);
            }
            ++runs;
            events += what.events;
            simulated += what.elapsed;
            all = (all ^ what.hash) * 0x100000001b3U;
        }
    }
    if (!known) {
        std::fprintf(stderr, "there is no such scenario\n");
        return 2;
    }
    const double seconds =
        std::chrono::duration<double>{std::chrono::steady_clock::now() - began}.count();
    std::printf("%" PRIu64 " seeds, %" PRIu64 " runs, %" PRIu64
                " events, %.0f s simulated in %.1f s: %.0f runs/s; hash %016" PRIx64 "\n",
                seeds, runs, events, std::chrono::duration<double>{simulated}.count(), seconds,
                static_cast<double>(runs) / seconds, all);
    return 0;
}
