#include "insight/thread_snapshot.hpp"

#include <simplenet/coro/detail/promise.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <source_location>
#include <span>
#include <string>

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

// --- the snapshot --------------------------------------------------------------------------------

/// Filled by the stalled thread itself, in a signal handler: it reads its own variables, which no
/// other thread may read. One at a time: only the watching thread requests snapshots.
struct snapshot {
    // nothing  a handler that runs now came too late, or is for another thread
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
constinit snapshot requested_snapshot{};

/// Posted once for each snapshot taken.
// The only synchronisation object that a signal handler may post: signal-safety(7).
class semaphore {
public:
    semaphore() noexcept { reset(); }
    semaphore(const semaphore&) = delete;
    semaphore& operator=(const semaphore&) = delete;

    /// @pre There are no waiters.
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
semaphore snapshot_taken;

int stack_of_this_thread([[maybe_unused]] std::span<void*> frames) noexcept {
#if SIMPLENET_HAS_BACKTRACE
    return ::backtrace(frames.data(), static_cast<int>(frames.size()));
#else
    return 0;
#endif
}

void take_snapshot() noexcept {
    run_queue* const queue = run_queue::current();
    if (queue == nullptr || queue != requested_snapshot.queue.load(std::memory_order_relaxed))
        return;
    auto expected = snapshot::state::wanted;
    if (!requested_snapshot.phase.compare_exchange_strong(expected, snapshot::state::taking))
        return;
    requested_snapshot.frame_count = stack_of_this_thread(requested_snapshot.frames);
    requested_snapshot.task = 0;
    requested_snapshot.name[0] = '\0';
    requested_snapshot.site = {};
    // The scope of the running coroutine, and its chain, exist as long as the coroutine runs.
    if (const chain* const running = owner_of(*queue->here)) {
        requested_snapshot.task = running->number;
        if (running->name) std::strncpy(requested_snapshot.name.data(), running->name.get(), 63);
        if (const promise_base* first = running->first()) requested_snapshot.site = first->where_;
    }
    requested_snapshot.phase.store(snapshot::state::taken, std::memory_order_release);
    snapshot_taken.post();
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
    std::atomic<void (*)(int, siginfo_t*, void*)> handler_with_info = nullptr; // comes first
    std::atomic<int> under_way = 0; // sent by us, and not handled yet
};
constinit std::array<signal_in_use, _NSIG> in_use{};
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
    if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &requested_snapshot) {
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
    info.si_value.sival_ptr = &requested_snapshot;
    under_way.fetch_add(1);
    // Not all C libraries have pthread_sigqueue(3).
    if (::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, signal, &info) == 0) return true;
    under_way.fetch_sub(1);
    return false;
}

bool is_ours(const struct sigaction& action) noexcept {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_signal;
}

} // namespace

void snapshot_handlers::install(int signal) noexcept {
    if (!is_usable(signal)) return;
    entry& at = entries_[static_cast<std::size_t>(signal)];
    if (at.installed) return;
    std::array<void*, 1> one{};
    // Loads libraries at this point, so that the handler need not.
    static_cast<void>(stack_of_this_thread(one));

    struct sigaction before{};
    if (::sigaction(signal, nullptr, &before) != 0) return;
    at.installed = true;
    if (is_ours(before)) return; // a handler that replaced ours has restored it
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

void snapshot_handlers::remove(int signal) noexcept {
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

// --- the request ---------------------------------------------------------------------------------

void ask(pid_t thread, run_queue& queue, int signal, stall_report& into) {
    requested_snapshot.queue.store(&queue, std::memory_order_relaxed);
    requested_snapshot.phase.store(snapshot::state::wanted);
    if (!send(thread, signal) || !snapshot_taken.wait_for(std::chrono::milliseconds{200})) {
        auto expected = snapshot::state::wanted;
        if (requested_snapshot.phase.compare_exchange_strong(expected, snapshot::state::nothing))
            return;
        snapshot_taken.wait(); // the handler is at work
    }
    // Acquires the writes that the handler released.
    SIMPLENET_EXPECTS(requested_snapshot.phase.load(std::memory_order_acquire) ==
                          snapshot::state::taken,
                      "the stalled thread answered without taking a snapshot");
    into.task = requested_snapshot.task;
    into.name = requested_snapshot.name.data();
    into.site = requested_snapshot.site;
    // Skips the frames of the handler and of the kernel's trampoline.
    for (int i = std::min(3, requested_snapshot.frame_count); i < requested_snapshot.frame_count;
         ++i)
        into.stack.push_back(words_of(requested_snapshot.frames[static_cast<std::size_t>(i)]));
    requested_snapshot.phase.store(snapshot::state::nothing);
}

void forget_what_was_asked() noexcept {
    requested_snapshot.phase = snapshot::state::nothing;
    snapshot_taken.reset();
}

} // namespace simplenet::v0::detail
