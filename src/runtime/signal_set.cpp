#include <simplenet/runtime/signal_set.hpp>

#include "sys/calls.hpp"

#include <simplenet/io/readiness.hpp>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace simplenet::v0 {
namespace {

/// The signals that the sets of one thread have blocked. Sets overlap, and are destroyed in any
/// order.
struct thread_mask {
    std::array<unsigned, _NSIG> sets{}; // the number of sets that want a signal blocked
    std::array<bool, _NSIG> ours{};     // whether it was unblocked before the first of them
};

thread_local thread_mask mask;

template <class Visit>
void for_each_in(const ::sigset_t& numbers, Visit visit) {
    for (int number = 1; number < _NSIG; ++number) {
        if (::sigismember(&numbers, number) == 1) visit(static_cast<std::size_t>(number));
    }
}

void block(const ::sigset_t& numbers) noexcept {
    ::sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &numbers, &before);
    for_each_in(numbers, [&](std::size_t number) {
        if (mask.sets[number]++ != 0) return;
        mask.ours[number] = ::sigismember(&before, static_cast<int>(number)) == 0;
    });
}

void release(const ::sigset_t& numbers) noexcept {
    ::sigset_t freed;
    ::sigemptyset(&freed);
    for_each_in(numbers, [&](std::size_t number) {
        if (--mask.sets[number] == 0 && mask.ours[number]) {
            ::sigaddset(&freed, static_cast<int>(number));
        }
    });
    ::pthread_sigmask(SIG_UNBLOCK, &freed, nullptr);
}

::sigset_t set_of(std::initializer_list<int> numbers) noexcept {
    ::sigset_t set;
    ::sigemptyset(&set);
    for (const int number : numbers) {
        const bool blockable = number != SIGKILL && number != SIGSTOP;
        SIMPLENET_EXPECTS(blockable && ::sigaddset(&set, number) == 0,
                          "a signal_set can only have signals that can be blocked");
    }
    return set;
}

int descriptor_of(const ::sigset_t& numbers) {
    const int descriptor = detail::sys::signalfd(numbers);
    if (descriptor < 0) {
        detail::throw_system_error(detail::sys::error_from(descriptor),
                                   "no descriptor for a signal_set");
    }
    return descriptor;
}

} // namespace

inline namespace runtime {

signal_set::signal_set(std::initializer_list<int> numbers)
    : numbers_{set_of(numbers)} // Before the mask: if this fails, nothing has changed.
    , descriptor_{descriptor_of(numbers_)}
    , thread_{std::this_thread::get_id()} {
    block(numbers_);
}

signal_set::signal_set(signal_set&& other) noexcept
    : numbers_{other.numbers_}
    , descriptor_{std::move(other.descriptor_)}
    , thread_{other.thread_} {}

signal_set& signal_set::operator=(signal_set&& other) noexcept {
    if (this != &other) {
        unblock();
        numbers_ = other.numbers_;
        descriptor_ = std::move(other.descriptor_);
        thread_ = other.thread_;
    }
    return *this;
}

signal_set::~signal_set() {
    unblock();
}

void signal_set::unblock() noexcept {
    if (!descriptor_) return;
    SIMPLENET_EXPECTS(
        thread_ == std::this_thread::get_id(),
        "a signal_set is destroyed on the thread that created it, to restore its mask");
    descriptor_.reset();
    release(numbers_);
}

task<result<int>> signal_set::next() {
    SIMPLENET_EXPECTS(descriptor_, "a signal_set that was moved from has no signals");
    for (;;) {
        if (auto ready = co_await async_wait_readable(descriptor_.get()); !ready) {
            co_return fail(ready);
        }
        const int number = detail::sys::read_signal(descriptor_.get());
        if (number > 0) co_return number;
        // EAGAIN: another set or another coroutine was faster.
        if (number != -EAGAIN) co_return fail(detail::sys::error_from(number));
    }
}

} // namespace runtime
} // namespace simplenet::v0
