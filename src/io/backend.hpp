#pragma once
// backend_driver: the interface of a backend, which executes operations; epoll_backend and
// uring_backend implement it. Layer io, private. Loop thread only, except wake().

#include "threads/posting_queue.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/io/loop_options.hpp>
#include <simplenet/io/readiness.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace simplenet::v0::detail {

class connect_operation;
class io_queue;
class receive_pool;

/// As a timeout: until an event.
inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

#if SIMPLENET_SEAMS
/// epoll over a kernel that a test simulates (docs/development/simulator.md). For
/// loop_options::backend in tests; not a value of the public enumeration.
inline constexpr backend simulated_backend{255};
#endif

class backend_driver : public waker {
public:
    virtual ~backend_driver() = default;

    /// One attempt without waiting. True: it is over, and `op` has its outcome. False: it would
    /// block; to let `op` wait, call submit() next.
    virtual bool attempt_read(operation& op) noexcept = 0;
    virtual bool attempt_connect(connect_operation& op) noexcept = 0;
    /// Takes the waiting `op`, until the backend passes it to io_queue::complete() or
    /// io_queue::attempt_later().
    virtual void submit(operation& op) noexcept = 0;
    /// Asks for an early end of a waiting `op`, which is reported like any other end.
    virtual void cancel(operation& op, stop_reason reason) noexcept = 0;
    /// The deadline of an operation has passed. The operation ends after the next poll, and data
    /// that the kernel has by then still counts: so that poll must take all of it.
    virtual void limit_passed() noexcept {}

    /// Takes the waiting `op`, whose descriptor number is not negative, until the backend passes it
    /// to io_queue::complete() or io_queue::give_up().
    virtual void submit(readiness_operation& op) noexcept = 0;
    /// Asks for the end of an `op` that was stopped.
    virtual void cancel(readiness_operation& op) noexcept = 0;

    /// Ends everything that the backend does for `record` on its own. The kernel's references drop
    /// to 0 over the next polls, and each drop calls io_queue::advance_close().
    virtual void retire(socket_record& record) noexcept = 0;
    /// Ends accepting ahead of accept() on `listener`, which takes a turn or two; connections that
    /// were accepted meanwhile are given to accept().
    virtual void stop_accepting_ahead(socket_record& listener) noexcept {
        static_cast<void>(listener);
    }
    /// Called before the descriptor of this listener is closed: afterwards nothing may keep it
    /// listening.
    virtual void let_go(const socket_record& record) noexcept { static_cast<void>(record); }
    /// Appends the bytes received ahead for a record that is being released to `unread`.
    virtual void take_ahead(socket_record& record, std::vector<std::byte>& unread) = 0;

    /// Waits for at most `timeout` (zero: not at all), and passes finished operations to the loop.
    /// Returns the number of events.
    virtual std::size_t poll(std::chrono::nanoseconds timeout) noexcept = 0;
    /// Passes on operations that finished meanwhile, before the last attempt of operations whose
    /// deadline has passed. No system call unless there are any.
    virtual std::size_t catch_up() noexcept = 0;

    /// See event_loop::native_handle().
    virtual int native_handle() noexcept = 0;
    /// Makes native_handle(), which was called before, readable until the next poll().
    virtual void announce() noexcept = 0;
    /// The kernel works for us: poll() will report an event without further action.
    [[nodiscard]] virtual bool busy() const noexcept = 0;

    [[nodiscard]] virtual backend kind() const noexcept = 0;
    [[nodiscard]] virtual receive_pool& pool() noexcept = 0;
};

} // namespace simplenet::v0::detail
