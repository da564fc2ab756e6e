// Counts the user-space instructions of a program by single-stepping it (ptrace(2),
// PTRACE_SINGLESTEP): for io_uring, which valgrind does not support, on machines without usable
// processor counters. Each step takes a few microseconds. Only the first thread is counted, between
// the first and the second SIGUSR2 sent to it (load_client --mark); the program does not see these
// signals.
//
//   count_instructions [--profile FILE] PROGRAM ARGUMENTS...
//
// The total goes to standard error; FILE gets a line with address and count for each instruction.

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include <sched.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

std::uint64_t place_of(pid_t child) {
#if defined(__x86_64__)
    // One word of struct user: reading all registers would double the cost of a step.
    return static_cast<std::uint64_t>(
        ::ptrace(PTRACE_PEEKUSER, child, offsetof(user, regs.rip), nullptr));
#else
    static_cast<void>(child);
    return 0;
#endif
}

} // namespace

int main(int argc, char** argv) {
    const char* profile = nullptr;
    int first = 1;
    if (argc > 3 && std::strcmp(argv[1], "--profile") == 0) {
        profile = argv[2];
        first = 3;
    }
    if (first >= argc) {
        std::fprintf(stderr, "usage: count_instructions [--profile FILE] PROGRAM ARGUMENTS...\n");
        return 2;
    }
    // Both on one processor: waking each other up on different ones takes ten times as long as a
    // step.
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &here);
    static_cast<void>(::sched_setaffinity(0, sizeof here, &here));

    // Before all other programs on that processor, if allowed: each step is two context switches.
    const sched_param first_of_all{.sched_priority = 1};
    static_cast<void>(::sched_setscheduler(0, SCHED_FIFO, &first_of_all));

    const pid_t child = ::fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        ::personality(ADDR_NO_RANDOMIZE); // for --profile; not allowed everywhere
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::execvp(argv[first], argv + first);
        fail(argv[first]);
    }

    std::unordered_map<std::uint64_t, std::uint64_t> places;
    std::uint64_t total = 0;
    bool counting = false;
    int status = 0;
    while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        long signal = WSTOPSIG(status);
        if (signal == SIGUSR2) {
            counting = !counting;
            signal = 0;
        } else if (signal == SIGTRAP) {
            total += counting ? 1 : 0;
            if (counting && profile != nullptr) ++places[place_of(child)];
            signal = 0;
        }
        const auto how = counting ? PTRACE_SINGLESTEP : PTRACE_CONT;
        if (::ptrace(how, child, nullptr, signal) != 0) fail("ptrace");
    }
    std::fprintf(stderr, "instructions=%llu\n", static_cast<unsigned long long>(total));
    if (profile != nullptr) {
        std::FILE* const file = std::fopen(profile, "w");
        if (file == nullptr) fail(profile);
        for (const auto& [address, count] : places) {
            std::fprintf(file, "%llx %llu\n", static_cast<unsigned long long>(address),
                         static_cast<unsigned long long>(count));
        }
        std::fclose(file);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
