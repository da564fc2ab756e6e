#pragma once
// epoll_waits: the waits of an epoll backend for descriptors that other code owns. Layer epoll,
// private.

#include "io/io_queue.hpp"
#include "sys/calls.hpp"
#include "sys/epoll_calls.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/readiness.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <new>

namespace simplenet::v0::detail {

/// Has its own epoll descriptor, which the backend watches like any other: a descriptor that is
/// waited for here may also be registered with the backend as a socket, now or later.
///
/// One-shot: an event disarms a registration, and the next wait arms it again. So a wait costs one
/// call and no removal, a stop costs no call, and an event without a waiter is reported only once.
/// The kernel drops a registration when the last duplicate of the descriptor is closed.
class epoll_waits {
public:
    explicit epoll_waits(io_queue& owner) // a deque allocates
        : queue_{owner} {}

    /// The descriptor to watch for EPOLLIN, level-triggered; or a negated errno.
    [[nodiscard]] int open() noexcept {
        const int made = sys::epoll_create();
        if (made >= 0) epoll_.reset(made);
        return made;
    }

    void submit(readiness_operation& op) noexcept {
        const auto number = static_cast<std::size_t>(op.fd);
        if (number >= entries_.size()) {
            // Checked first, because the number of a descriptor that is not open may be huge.
            if (const int asked = sys::get_descriptor_flags(op.fd); asked < 0) {
                return queue_.complete(op, -asked);
            }
            try {
                entries_.resize(number + 1);
            } catch (const std::bad_alloc&) {
                return queue_.complete(op, ENOMEM);
            }
        }
        entry& at = entries_[number];
        if (at.registered && !wake(op.fd, at, interest_of(at) | interest_in(op.waits_to))) {
            forget(at);
        }
        if (!at.registered) {
            const std::uint32_t interest = interest_in(op.waits_to);
            int added = control(EPOLL_CTL_ADD, op.fd, at, interest);
            // Still registered: the call that failed in wake() had another reason than a new file.
            if (added == -EEXIST) added = control(EPOLL_CTL_MOD, op.fd, at, interest);
            // EPERM: epoll does not support the file, for example a regular one. Always ready, as
            // in poll(2).
            if (added < 0) return queue_.complete(op, added == -EPERM ? 0 : -added);
            at.registered = true;
        }
        list_of(at, op.waits_to).push_back(op);
    }

    void cancel(readiness_operation& op) noexcept {
        op.unlink();
        queue_.give_up(op);
    }

    /// Called when a descriptor is ready. Resumes nothing.
    void collect() noexcept {
        std::array<epoll_event, 64> events;
        // More than these are reported again.
        const int count = sys::epoll_wait(epoll_.get(), events, 0);
        for (int at = 0; at < count; ++at)
            dispatch(events[static_cast<std::size_t>(at)]);
    }

private:
    using list = intrusive_list<readiness_operation>;

    /// The state of a descriptor number.
    struct entry {
        list readers;
        list writers;
        std::uint32_t generation = 0; // of the file behind the number
        bool registered = false;      // as far as we know: the owner may have closed it
    };

    static list& list_of(entry& at, direction way) noexcept {
        return way == direction::read ? at.readers : at.writers;
    }
    static std::uint32_t interest_in(direction way) noexcept {
        return way == direction::read ? EPOLLIN : EPOLLOUT;
    }
    static std::uint32_t interest_of(entry& at) noexcept {
        return (at.readers.empty() ? 0U : interest_in(direction::read)) |
               (at.writers.empty() ? 0U : interest_in(direction::write));
    }

    int control(int action, int fd, const entry& at, std::uint32_t interest) noexcept {
        epoll_event event{
            .events = interest | EPOLLONESHOT,
            .data = {.u64 = std::uint64_t{at.generation} << 32U | static_cast<std::uint32_t>(fd)}};
        return sys::epoll_control(epoll_.get(), action, fd, &event);
    }
    bool wake(int fd, const entry& at, std::uint32_t interest) noexcept {
        return control(EPOLL_CTL_MOD, fd, at, interest) == 0;
    }

    /// The owner closed the descriptor, and its number is free or belongs to another file. Its
    /// waiters would wait in vain, so end them. A duplicate of the old file may still report; the
    /// generation distinguishes these events.
    void forget(entry& at) noexcept {
        at.registered = false;
        ++at.generation;
        for (list* waiting : {&at.readers, &at.writers})
            end_all(*waiting, EBADF);
    }

    void end_all(list& waiting, int error) noexcept {
        while (!waiting.empty())
            queue_.complete(waiting.pop_front(), error);
    }

    void dispatch(const epoll_event& event) noexcept {
        const auto number = static_cast<std::uint32_t>(event.data.u64);
        entry& at = entries_[number];
        if (at.generation != event.data.u64 >> 32U) return;
        constexpr unsigned both = EPOLLHUP | EPOLLERR;
        if ((event.events & (EPOLLIN | both)) != 0) end_all(at.readers, 0);
        if ((event.events & (EPOLLOUT | both)) != 0) end_all(at.writers, 0);
        const std::uint32_t rest = interest_of(at);
        if (rest != 0 && !wake(static_cast<int>(number), at, rest)) forget(at);
    }

    io_queue& queue_;
    unique_fd epoll_;
    std::deque<entry> entries_; // by descriptor number; a deque, because lists do not move
};

} // namespace simplenet::v0::detail
