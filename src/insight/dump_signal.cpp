#include "insight/dump_signal.hpp"

#include "insight/standard_error.hpp"
#include "loop/loop.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

namespace simplenet::v0::detail {

namespace {

// Read by the handler without a lock, because the handler may interrupt the lock's owner.
struct armed_signal {
    std::atomic<dump_signal*> who = nullptr;
    std::atomic<int> signal = 0;
};
constinit std::array<armed_signal, 256> armed_signals{};
constinit std::atomic<unsigned> running_handlers = 0; // running now
static_assert(std::atomic<dump_signal*>::is_always_lock_free);

struct replaced {
    unsigned users = 0;
    struct sigaction before{};
};
constinit std::mutex guard_of_slots; // guards the variables below, and writes to those above
// Not a map: an exception here would destroy a partly constructed loop inside another one.
constinit std::array<replaced, _NSIG> handled{};

} // namespace

result<> dump_signal::arm(int signal) {
    if (signal < 1 || signal >= _NSIG) return fail(std::errc::invalid_argument);
    const std::lock_guard lock{guard_of_slots};
    for (std::size_t slot = 0; slot < armed_signals.size(); ++slot) {
        if (armed_signals[slot].who.load() != nullptr) continue;
        replaced& old = handled[static_cast<std::size_t>(signal)];
        if (old.users == 0) {
            struct sigaction ours{};
            ours.sa_handler = [](int number) {
                const int kept = errno;
                handle(number);
                errno = kept;
            };
            ours.sa_flags = SA_RESTART;
            sigemptyset(&ours.sa_mask);
            if (::sigaction(signal, &ours, &old.before) != 0)
                return fail(std::errc::invalid_argument);
        }
        ++old.users;
        signal_ = signal;
        slot_ = slot;
        armed_signals[slot].signal = signal;
        armed_signals[slot].who = this;
        return {};
    }
    return fail(std::errc::not_enough_memory);
}

void dump_signal::disarm() noexcept {
    if (signal_ == 0) return;
    {
        const std::lock_guard lock{guard_of_slots};
        armed_signals[slot_].who = nullptr;
        replaced& old = handled[static_cast<std::size_t>(signal_)];
        if (--old.users == 0) ::sigaction(signal_, &old.before, nullptr);
    }
    signal_ = 0;
    // A handler on another thread may have read the slot before; one on this thread has returned.
    while (running_handlers != 0)
        std::this_thread::yield();
}

void dump_signal::handle(int signal) noexcept {
    ++running_handlers;
    for (armed_signal& each : armed_signals) {
        dump_signal* const who = each.who;
        if (who == nullptr || each.signal != signal) continue;
        // Posting is an exchange and, if the loop sleeps, a write(2): both are safe in a handler.
        if (!who->posted_.exchange(true)) who->loop_.post(*who);
    }
    --running_handlers;
}

void dump_signal::run() noexcept {
    posted_ = false; // later signals print again
    try {
        std::string text;
        loop_.describe(text);
        print_to_standard_error(text);
    } catch (...) {
        print_to_standard_error("no memory to print the tasks\n");
    }
}

} // namespace simplenet::v0::detail
