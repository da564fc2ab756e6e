#include <simplenet/runtime/detail/main_signals.hpp>

#include <cerrno>
#include <thread>
#include <utility>

#include <pthread.h>
#include <unistd.h>

namespace simplenet::v0::detail {

namespace {

// Only one run() at a time is on the main thread.
constinit std::atomic<main_signals*> handling = nullptr;
// The number of running signal handlers, on all threads: code that removes their data waits for 0.
constinit std::atomic<unsigned> inside = 0;
static_assert(std::atomic<main_signals*>::is_always_lock_free &&
              std::atomic<unsigned>::is_always_lock_free);

void wait_for_handlers() noexcept {
    while (inside.load(std::memory_order_seq_cst) != 0)
        std::this_thread::yield();
}

} // namespace

main_signals::main_signals(bool wanted) noexcept {
    if (!wanted || ::gettid() != ::getpid()) return;
    handling.store(this, std::memory_order_seq_cst);

    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    struct sigaction ours{};
    ours.sa_handler = &main_signals::handle;
    ours.sa_flags = SA_RESTART; // for calls in the program that do not expect EINTR
    for (const installed& each : signals_)
        ::sigaddset(&ours.sa_mask, each.number);
    for (installed& each : signals_) {
        ::sigaction(each.number, nullptr, &each.before);
        each.active = (each.before.sa_flags & SA_SIGINFO) == 0 &&
                      each.before.sa_handler == SIG_DFL &&
                      ::sigismember(&blocked, each.number) == 0;
        if (each.active) ::sigaction(each.number, &ours, nullptr);
    }
}

main_signals::~main_signals() {
    if (handling.load(std::memory_order_relaxed) != this) return;
    for (const installed& each : signals_) {
        if (!each.active) continue;
        // An action that the program has installed meanwhile stays.
        struct sigaction current{};
        ::sigaction(each.number, nullptr, &current);
        const bool ours =
            (current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == &main_signals::handle;
        if (ours) ::sigaction(each.number, &each.before, nullptr);
    }
    handling.store(nullptr, std::memory_order_seq_cst);
    wait_for_handlers();
    if (const int number = first_.load(std::memory_order_relaxed); number != 0 && !heeded_) {
        ::raise(number);
    }
}

void main_signals::begin(event_loop& loop, join_handle<> main) noexcept {
    main_ = std::move(main);
    loop_.store(&loop, std::memory_order_seq_cst);
    // A signal that came before there was a loop; or one just posted, for which this has no effect.
    if (first_.load(std::memory_order_seq_cst) != 0) run();
}

void main_signals::end() noexcept {
    loop_.store(nullptr, std::memory_order_seq_cst);
    wait_for_handlers();
}

// On any thread, at any point: only atomics and system calls. A post consists of both.
void main_signals::handle(int number) noexcept {
    const int saved = errno;
    inside.fetch_add(1, std::memory_order_seq_cst);
    main_signals* const target = handling.load(std::memory_order_seq_cst);
    if (target == nullptr) {
        ::raise(number); // run() has just ended and restored the previous action
    } else if (!target->take(number)) {
        struct sigaction defaults{};
        defaults.sa_handler = SIG_DFL;
        ::sigaction(number, &defaults, nullptr);
        ::raise(number); // blocked until the handler returns
    }
    inside.fetch_sub(1, std::memory_order_seq_cst);
    errno = saved;
}

bool main_signals::take(int number) noexcept {
    int none = 0;
    if (!first_.compare_exchange_strong(none, number, std::memory_order_seq_cst)) return false;
    if (event_loop* const loop = loop_.load(std::memory_order_seq_cst)) loop->post_item(*this);
    return true;
}

void main_signals::run() noexcept {
    if (main_.done()) return;
    heeded_ = true;
    main_.request_stop();
}

} // namespace simplenet::v0::detail
