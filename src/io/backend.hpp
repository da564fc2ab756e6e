#pragma once
// backend_driver: what an interpreter of operations provides; epoll_backend and uring_backend
// implement it. Layer io, private. Loop thread only, except wake().

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

/// As a time to wait: until something happens.
inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

#if SIMPLENET_SEAMS
/// epoll over a kernel that a test stands in for (docs/development/simulator.md). For
/// loop_options::backend of tests; no value of the public enumeration.
inline constexpr backend simulated_backend{255};
#endif

class backend_driver : public waker {
public:
    virtual ~backend_driver() = default;

    /// One try without waiting. True: it is over, and `op` has its outcome. False: nothing is
    /// there; if `op` is to wait, submit() is next.
    virtual bool attempt_read(operation& op) noexcept = 0;
    virtual bool attempt_connect(connect_operation& op) noexcept = 0;
    /// Takes `op`, waiting, until io_queue::complete() or io_queue::attempt_later() is called with
    /// it.
    virtual void submit(operation& op) noexcept = 0;
    /// Asks for an early end of a waiting `op`, which comes like every other one.
    virtual void cancel(operation& op, stop_reason reason) noexcept = 0;
    /// The limit of an operation has passed. It ends after the next poll, and what the kernel has
    /// by then counts: so that poll has to take all of it.
    virtual void limit_passed() noexcept {}

    /// Takes `op`, waiting, with a descriptor number that is not negative, until
    /// io_queue::complete() or io_queue::give_up() is called with it.
    virtual void submit(readiness_operation& op) noexcept = 0;
    /// Asks for the end of an `op` that was stopped.
    virtual void cancel(readiness_operation& op) noexcept = 0;

    /// Lets go of everything it does for `record` by itself. References that the kernel holds go
    /// down to 0 over the next polls, and each of them calls io_queue::advance_close().
    virtual void retire(socket_record& record) noexcept = 0;
    /// The descriptor of this listener is closed next: after that nothing is to keep it listening.
    virtual void let_go(const socket_record& record) noexcept { static_cast<void>(record); }
    /// Moves what was received ahead for a record that is being released to the end of `unread`.
    virtual void take_ahead(socket_record& record, std::vector<std::byte>& unread) = 0;

    /// Waits at most so long (zero: not at all) and hands what finished to the loop. Returns how
    /// many events there were.
    virtual std::size_t poll(std::chrono::nanoseconds timeout) noexcept = 0;
    /// Hands over what finished meanwhile, before operations whose deadline has passed are
    /// attempted for the last time. No system call unless there is something.
    virtual std::size_t catch_up() noexcept = 0;

    /// See event_loop::native_handle().
    virtual int native_handle() noexcept = 0;
    /// Makes native_handle(), which was asked for, readable until the next poll().
    virtual void announce() noexcept = 0;
    /// The kernel works for us: poll() will report something without anybody's doing.
    [[nodiscard]] virtual bool busy() const noexcept = 0;

    [[nodiscard]] virtual backend kind() const noexcept = 0;
    [[nodiscard]] virtual receive_pool& pool() noexcept = 0;
};

} // namespace simplenet::v0::detail
