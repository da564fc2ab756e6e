#include "runtime/watchdog.hpp"

#include "runtime/loop.hpp"
#include "runtime/signals_blocked.hpp"
#include "sys/threads.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/runtime/stall_report.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define SIMPLENET_HAS_BACKTRACE 1
#else
#define SIMPLENET_HAS_BACKTRACE 0 // musl
#endif

namespace simplenet::inline v0::detail {

namespace {

using clock = std::chrono::steady_clock;
using nanoseconds = std::chrono::nanoseconds;

// --- asking the stalled thread -------------------------------------------------------------------

/// Filled by the stalled thread itself, in a signal handler: what it reads are its own variables,
/// and nobody else may. One at a time: only the watching thread asks.
struct snapshot {
    // nothing  a handler that runs now came too late, or is for somebody else
    // wanted   the next handler on the thread of `queue` takes it
    // taking   it does
    // taken    the rest is valid
    enum class state : std::uint8_t { nothing, wanted, taking, taken };

    std::atomic<state> phase = state::nothing;
    std::atomic<run_queue*> queue = nullptr;
    std::array<void*, 64> frames{};
    int frame_count = 0;
    std::uint64_t task = 0;
    std::array<char, 64> name{};
    std::source_location site;
};
constinit snapshot asked{};

/// Posted once for each snapshot that was taken.
// Of what one thread can wait for, the one that a signal handler may give: signal-safety(7).
class semaphore {
public:
    semaphore() noexcept { ::sem_init(&counter_, 0, 0); }
    semaphore(const semaphore&) = delete;
    semaphore& operator=(const semaphore&) = delete;

    void post() noexcept { ::sem_post(&counter_); }
    void wait() noexcept {
        while (::sem_wait(&counter_) != 0 && errno == EINTR) {
        }
    }
    /// False: the time was over first.
    [[nodiscard]] bool wait_for(std::chrono::milliseconds limit) noexcept {
        const auto until = (clock::now() + limit).time_since_epoch();
        const auto seconds = std::chrono::floor<std::chrono::seconds>(until);
        const timespec moment{.tv_sec = static_cast<time_t>(seconds.count()),
                              .tv_nsec = static_cast<long>(nanoseconds{until - seconds}.count())};
        int outcome = 0;
        do
            outcome = ::sem_clockwait(&counter_, CLOCK_MONOTONIC, &moment);
        while (outcome != 0 && errno == EINTR);
        return outcome == 0;
    }

private:
    sem_t counter_{};
};
semaphore answered;

int stack_of_this_thread([[maybe_unused]] std::span<void*> frames) noexcept {
#if SIMPLENET_HAS_BACKTRACE
    return ::backtrace(frames.data(), static_cast<int>(frames.size()));
#else
    return 0;
#endif
}

void take_snapshot() noexcept {
    run_queue* const queue = run_queue::current();
    if (queue == nullptr || queue != asked.queue.load(std::memory_order_relaxed)) return;
    auto expected = snapshot::state::wanted;
    if (!asked.phase.compare_exchange_strong(expected, snapshot::state::taking)) return;
    asked.frame_count = stack_of_this_thread(asked.frames);
    asked.task = 0;
    asked.name[0] = '\0';
    asked.site = {};
    // The scope of the coroutine that runs, and the chain it belongs to, live as long as it runs.
    if (const chain* const running = owner_of(*queue->here)) {
        asked.task = running->number;
        if (running->name) std::strncpy(asked.name.data(), running->name.get(), 63);
        if (const promise_base* first = running->first()) asked.site = first->where_;
    }
    asked.phase.store(snapshot::state::taken, std::memory_order_release);
    answered.post();
}

std::string words_of(void* address) {
    Dl_info info{};
    std::array<char, 32> number{};
    if (::dladdr(address, &info) == 0) {
        std::snprintf(number.data(), number.size(), "%p", address);
        return number.data();
    }
    const auto offset_from = [&](const void* base) {
        std::snprintf(
            number.data(), number.size(), "+0x%zx",
            static_cast<std::size_t>(static_cast<char*>(address) - static_cast<const char*>(base)));
        return number.data();
    };
    std::string text;
    if (info.dli_sname != nullptr) {
        int status = 0;
        const std::unique_ptr<char, decltype(&std::free)> plain{
            abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free};
        text += status == 0 ? plain.get() : info.dli_sname;
        text += offset_from(info.dli_saddr);
        text += ' ';
    }
    text += '(';
    text += info.dli_fname;
    text += offset_from(info.dli_fbase);
    return text += ')';
}

/// Asks `thread`, which runs `queue`, what it does. It may not answer: the signal may be blocked.
void ask(pthread_t thread, run_queue& queue, int signal, stall_report& into) {
    if (signal == 0) return;
    asked.queue.store(&queue, std::memory_order_relaxed);
    asked.phase.store(snapshot::state::wanted);
    if (::pthread_kill(thread, signal) != 0 || !answered.wait_for(std::chrono::milliseconds{200})) {
        auto expected = snapshot::state::wanted;
        if (asked.phase.compare_exchange_strong(expected, snapshot::state::nothing)) return;
        answered.wait(); // it is at it
    }
    // Acquires what the handler released.
    SIMPLENET_EXPECTS(asked.phase.load(std::memory_order_acquire) == snapshot::state::taken,
                      "the stalled thread answered without taking a snapshot");
    into.task = asked.task;
    into.name = asked.name.data();
    into.site = asked.site;
    // Without the handler and what the kernel put below it.
    for (int i = std::min(3, asked.frame_count); i < asked.frame_count; ++i)
        into.stack.push_back(words_of(asked.frames[static_cast<std::size_t>(i)]));
    asked.phase.store(snapshot::state::nothing);
}

void print(const stall_report& report) {
    std::array<char, 128> words{};
    std::snprintf(words.data(), words.size(),
                  "a turn of an event loop has taken %.3f s; task #%llu",
                  std::chrono::duration<double>(report.blocked).count(),
                  static_cast<unsigned long long>(report.task));
    std::string text = words.data();
    if (!report.name.empty()) (text += ' ') += report.name;
    text += '\n';
    if (report.site.line() != 0) {
        ((text += "    at ") += report.site.file_name()) += ':';
        (text += std::to_string(report.site.line())) += '\n';
    }
    for (const std::string& frame : report.stack)
        ((text += "    ") += frame) += '\n';
    print_to_standard_error(text);
}

// --- watching ------------------------------------------------------------------------------------

struct watched_loop {
    loop* which;
    pthread_t thread;
    std::uint64_t turn = 0; // the one seen last
    clock::time_point since{};
    bool reported = false;
};

class watchdog {
public:
    ~watchdog() = default;

    void add(loop& watched) {
        const std::lock_guard lock{guard_};
        handle(watched.options().stall_signal);
        // All that can fail comes first: a loop that is not watched is not on the list.
        loops_.reserve(loops_.size() + 1);
        if (!thread_.joinable()) {
            stopping_ = false;
            const signals_blocked inherited;
            thread_ = sys::start_thread([this] { watch(); });
        }
        loops_.push_back({.which = &watched, .thread = ::pthread_self(), .since = clock::now()});
        changed_.notify_all();
    }

    void remove(loop& watched) noexcept {
        std::thread ended;
        {
            const std::lock_guard lock{guard_};
            std::erase_if(loops_, [&](const watched_loop& each) { return each.which == &watched; });
            if (loops_.empty()) {
                stopping_ = true;
                ended = std::move(thread_);
            }
            changed_.notify_all();
        }
        if (ended.joinable()) ended.join();
    }

private:
    /// The handler stays for good: a signal that is on its way must not kill.
    void handle(int signal) {
        static std::array<bool, 65> handled{};
        if (signal <= 0 || signal > 64 || handled[static_cast<std::size_t>(signal)]) return;
        std::array<void*, 1> one{};
        static_cast<void>(
            stack_of_this_thread(one)); // loads what it needs now, and not in the handler
        struct sigaction ours{};
        ours.sa_handler = [](int) {
            const int kept = errno;
            take_snapshot();
            errno = kept;
        };
        ours.sa_flags = SA_RESTART;
        sigemptyset(&ours.sa_mask);
        handled[static_cast<std::size_t>(signal)] = ::sigaction(signal, &ours, nullptr) == 0;
    }

    void watch() {
        std::unique_lock lock{guard_};
        while (!stopping_) {
            std::vector<std::pair<stall_report, void (*)(const stall_report&)>> reports;
            nanoseconds period = std::chrono::hours{1};
            for (watched_loop& each : loops_) {
                period = std::min(period, threshold_of(each) / 4);
                if (!stalls(each)) continue;
                stall_report& report = reports.emplace_back().first;
                reports.back().second = each.which->options().on_stall;
                report.blocked = clock::now() - each.since;
                ask(each.thread, *each.which, each.which->options().stall_signal, report);
            }
            if (!reports.empty()) {
                lock.unlock(); // a hook may make and destroy loops
                for (const auto& [report, hook] : reports)
                    hook == nullptr ? print(report) : hook(report);
                lock.lock();
                continue;
            }
            changed_.wait_for(lock, period);
        }
    }

    static nanoseconds threshold_of(const watched_loop& each) noexcept {
        return std::max<nanoseconds>(each.which->options().stall_threshold,
                                     std::chrono::milliseconds{1});
    }

    /// Looks at it once more. True: it has been in the same turn for too long, and that is new.
    static bool stalls(watched_loop& each) noexcept {
        loop_pulse& pulse = each.which->pulse;
        const auto now = clock::now();
        const auto turn = pulse.turns.load(std::memory_order_relaxed);
        const bool works = pulse.active.load(std::memory_order_relaxed) && !each.which->is_parked();
        if (!works || turn != each.turn) {
            each.turn = turn;
            each.since = now;
            each.reported = false;
            return false;
        }
        if (each.reported || now - each.since < threshold_of(each)) return false;
        each.reported = true;
        pulse.stalls.fetch_add(1, std::memory_order_relaxed);
        return true;
    }

    std::mutex guard_;
    std::condition_variable changed_;
    std::vector<watched_loop> loops_;
    std::thread thread_; // runs while there are loops
    bool stopping_ = false;
};

watchdog& the_watchdog() {
    static watchdog one;
    return one;
}

} // namespace

void watch(loop& watched) {
    the_watchdog().add(watched);
}
void unwatch(loop& watched) noexcept {
    the_watchdog().remove(watched);
}

} // namespace simplenet::inline v0::detail
