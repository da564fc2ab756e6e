#include "insight/watchdog.hpp"

#include "insight/standard_error.hpp"
#include "loop/loop.hpp"
#include "sys/threads.hpp"
#include "threads/one_for_process.hpp"
#include "threads/signals_blocked.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/insight/stall_report.hpp>

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
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define SIMPLENET_HAS_BACKTRACE 1
#else
#define SIMPLENET_HAS_BACKTRACE 0 // musl
#endif

namespace simplenet::v0::detail {

namespace {

using clock = std::chrono::steady_clock;
using nanoseconds = std::chrono::nanoseconds;

// --- taking a snapshot of the stalled thread -----------------------------------------------------

/// Filled by the stalled thread itself, in a signal handler: it reads its own variables, which no
/// other thread may read. One at a time: only the watching thread requests snapshots.
struct snapshot {
    // nothing  a handler that runs now came too late, or is for somebody else
    // wanted   the next handler on the thread of `queue` takes it
    // taking   the handler is filling it
    // taken    the other members are valid
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

/// Posted once for each snapshot taken.
// The only synchronisation object that a signal handler may post: signal-safety(7).
class semaphore {
public:
    semaphore() noexcept { reset(); }
    semaphore(const semaphore&) = delete;
    semaphore& operator=(const semaphore&) = delete;

    /// @pre Nobody waits.
    void reset() noexcept { ::sem_init(&counter_, 0, 0); }
    void post() noexcept { ::sem_post(&counter_); }
    void wait() noexcept {
        while (::sem_wait(&counter_) != 0 && errno == EINTR) {
        }
    }
    /// False: the time was up first.
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
    // The scope of the running coroutine, and its chain, exist as long as the coroutine runs.
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

// --- the signal ----------------------------------------------------------------------------------

/// The handler's view of a signal; it takes no lock.
struct signal_in_use {
    // The program's own action, before ours was installed.
    std::atomic<void (*)(int)> handler = SIG_DFL;
    std::atomic<void (*)(int, siginfo_t*, void*)> handler_with_info = nullptr; // used first
    std::atomic<int> under_way = 0; // sent by us, and not handled yet
};
constexpr int most_signals = _NSIG; // 65 on most machines, 128 on MIPS
constinit std::array<signal_in_use, most_signals> in_use{};
static_assert(std::atomic<void (*)(int)>::is_always_lock_free);

/// Calls the program's own handler.
void pass_on(int signal, siginfo_t* info, void* context) {
    const signal_in_use& here = in_use[static_cast<std::size_t>(signal)];
    if (auto* const with_info = here.handler_with_info.load(std::memory_order_relaxed)) {
        return with_info(signal, info, context);
    }
    auto* const handler = here.handler.load(std::memory_order_relaxed);
    if (handler != SIG_DFL && handler != SIG_IGN) handler(signal);
}

void on_signal(int signal, siginfo_t* info, void* context) {
    // A handler installed after ours may call ours, and ours calls it if installed again.
    static constinit thread_local bool passing_on = false;
    const int kept = errno;
    take_snapshot();
    if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &asked) {
        in_use[static_cast<std::size_t>(signal)].under_way.fetch_sub(1);
    } else if (!passing_on) {
        passing_on = true;
        errno = kept;
        pass_on(signal, info, context);
        passing_on = false;
        return;
    }
    errno = kept;
}

/// Sends `signal` to a thread, with a mark by which on_signal() recognises it.
bool send(pid_t thread, int signal) noexcept {
    std::atomic<int>& under_way = in_use[static_cast<std::size_t>(signal)].under_way;
    siginfo_t info{};
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    info.si_value.sival_ptr = &asked;
    under_way.fetch_add(1);
    // Not all C libraries have pthread_sigqueue(3).
    if (::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, signal, &info) == 0) return true;
    under_way.fetch_sub(1);
    return false;
}

/// The handlers of stall signals. Guarded by the watchdog's mutex.
///
/// The program's own handler is called for signals that we did not send, and is restored when no
/// loop needs the signal any more.
class stall_handlers {
public:
    void install(int signal) noexcept {
        if (!is_usable(signal)) return;
        entry& at = entries_[static_cast<std::size_t>(signal)];
        if (at.installed) return;
        std::array<void*, 1> one{};
        // Loads libraries now, so that the handler need not.
        static_cast<void>(stack_of_this_thread(one));

        struct sigaction before{};
        if (::sigaction(signal, nullptr, &before) != 0) return;
        at.installed = true;
        if (is_ours(before)) return; // a program that replaced it has restored it
        const bool with_info = (before.sa_flags & SA_SIGINFO) != 0;
        signal_in_use& here = in_use[static_cast<std::size_t>(signal)];
        here.handler_with_info = with_info ? before.sa_sigaction : nullptr;
        here.handler = with_info ? SIG_DFL : before.sa_handler;
        at.before = before;

        // The handler runs as the program's handler expects: on its stack, with its mask.
        struct sigaction ours = before;
        if (!with_info && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)) {
            ours.sa_flags = SA_RESTART;
            sigemptyset(&ours.sa_mask);
        }
        ours.sa_flags = (ours.sa_flags | SA_SIGINFO) & ~static_cast<int>(SA_RESETHAND);
        ours.sa_sigaction = &on_signal;
        at.installed = ::sigaction(signal, &ours, nullptr) == 0;
    }

    /// Called when no loop needs it any more.
    void remove(int signal) noexcept {
        if (!is_usable(signal)) return;
        entry& at = entries_[static_cast<std::size_t>(signal)];
        // One of our signals on its way must not kill: if a thread blocks it, the handler stays
        // installed.
        if (!at.installed || in_use[static_cast<std::size_t>(signal)].under_way != 0) return;
        struct sigaction now{};
        ::sigaction(signal, nullptr, &now);
        // A handler installed after ours stays.
        if (is_ours(now)) ::sigaction(signal, &at.before, nullptr);
        at.installed = false;
    }

    [[nodiscard]] bool handles(int signal) const noexcept {
        return is_usable(signal) && entries_[static_cast<std::size_t>(signal)].installed;
    }

private:
    static bool is_usable(int signal) noexcept { return signal > 0 && signal < most_signals; }

    struct entry {
        struct sigaction before{};
        bool installed = false;
    };

    static bool is_ours(const struct sigaction& action) noexcept {
        return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_signal;
    }

    std::array<entry, most_signals> entries_{};
};

/// Asks `thread`, which runs `queue`, for a snapshot. There may be no answer: the signal may be
/// blocked.
void ask(pid_t thread, run_queue& queue, int signal, stall_report& into) {
    asked.queue.store(&queue, std::memory_order_relaxed);
    asked.phase.store(snapshot::state::wanted);
    if (!send(thread, signal) || !answered.wait_for(std::chrono::milliseconds{200})) {
        auto expected = snapshot::state::wanted;
        if (asked.phase.compare_exchange_strong(expected, snapshot::state::nothing)) return;
        answered.wait(); // it is filling the snapshot
    }
    // Acquires the writes that the handler released.
    SIMPLENET_EXPECTS(asked.phase.load(std::memory_order_acquire) == snapshot::state::taken,
                      "the stalled thread answered without taking a snapshot");
    into.task = asked.task;
    into.name = asked.name.data();
    into.site = asked.site;
    // Skips the frames of the handler and of the kernel's trampoline.
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
    pid_t thread;
    std::uint64_t turn = 0; // last seen
    clock::time_point since{};
    bool reported = false;
};

class watchdog : private one_for_process<watchdog> {
    friend one_for_process<watchdog>;

public:
    watchdog() = default;
    /// `inherited`, of the parent process, has changed signal actions that still apply here.
    explicit watchdog(const stall_handlers& inherited) noexcept
        : handlers_{inherited} {}
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;

    /// The watchdog of this process.
    // Not a static object: a task of a watched loop may call std::exit(), which would destroy the
    // watchdog under its thread.
    [[nodiscard]] static watchdog& of_process() {
        return get(current_watchdog, [] {
            watchdog* const inherited = current_watchdog.load(std::memory_order_acquire);
            return inherited == nullptr ? std::make_unique<watchdog>()
                                        : std::make_unique<watchdog>(inherited->handlers_);
        });
    }

    void add(loop& watched) {
        const std::lock_guard lock{guard_};
        // Everything that can fail comes first: a loop that is not watched is not in the list.
        loops_.reserve(loops_.size() + 1);
        if (!thread_.joinable()) {
            // The parent process's thread may have been requesting a snapshot.
            asked.phase = snapshot::state::nothing;
            answered.reset();
            const signals_blocked inherited;
            thread_ = sys::start_thread([this, mine = generation_ + 1] { watch_loops(mine); });
            ++generation_;
        }
        handlers_.install(watched.options().stall_signal);
        loops_.push_back({.which = &watched, .thread = ::gettid(), .since = clock::now()});
        changed_.notify_all();
    }

    void remove(loop& watched) noexcept {
        std::thread ended;
        {
            const std::lock_guard lock{guard_};
            std::erase_if(loops_, [&](const watched_loop& each) { return each.which == &watched; });
            const int signal = watched.options().stall_signal;
            if (std::ranges::none_of(loops_, [signal](const watched_loop& each) {
                    return each.which->options().stall_signal == signal;
                })) {
                handlers_.remove(signal);
            }
            if (loops_.empty()) {
                ++generation_;
                ended = std::move(thread_);
            }
            changed_.notify_all();
        }
        if (!ended.joinable()) return;
        // A hook may destroy the last loop: the watching thread ends when the hook returns.
        ended.get_id() == std::this_thread::get_id() ? ended.detach() : ended.join();
    }

private:
    void watch_loops(unsigned mine) {
        std::unique_lock lock{guard_};
        while (generation_ == mine) {
            std::vector<std::pair<stall_report, void (*)(const stall_report&)>> reports;
            nanoseconds period = std::chrono::hours{1};
            for (watched_loop& each : loops_) {
                period = std::min(period, threshold_of(each) / 4);
                if (!stalls(each)) continue;
                stall_report& report = reports.emplace_back().first;
                reports.back().second = each.which->options().on_stall;
                report.blocked = clock::now() - each.since;
                const int signal = each.which->options().stall_signal;
                if (handlers_.handles(signal)) { // otherwise the signal might kill
                    ask(each.thread, *each.which, signal, report);
                }
            }
            if (!reports.empty()) {
                lock.unlock(); // a hook may create and destroy loops
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

    /// Looks at a loop again. True: it has been in the same turn for too long, and was not
    /// reported.
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

    static constinit std::atomic<watchdog*> current_watchdog;

    std::mutex guard_;
    std::condition_variable changed_;
    stall_handlers handlers_;
    std::vector<watched_loop> loops_;
    std::thread thread_;      // runs while there are loops
    unsigned generation_ = 0; // of the thread: it ends when it is no longer the latest
};

constinit std::atomic<watchdog*> watchdog::current_watchdog = nullptr;

} // namespace

void watch(loop& watched) {
    watchdog::of_process().add(watched);
}
void unwatch(loop& watched) noexcept {
    watchdog::of_process().remove(watched);
}

} // namespace simplenet::v0::detail
