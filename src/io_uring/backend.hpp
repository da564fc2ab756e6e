#pragma once
// The io_uring backend: operations that have to wait end with a completion; one io_uring_enter per
// turn submits, waits and times out. Layer io_uring, private.
//
// backend.cpp has the turn and the dispatch of completions, operations.cpp the operations with an
// entry of their own. The receiver reads from streams, the acceptor accepts.

#include "io/backend.hpp"
#include "io/io_queue.hpp"
#include "io_uring/acceptor.hpp"
#include "io_uring/entries.hpp"
#include "io_uring/poller.hpp"
#include "io_uring/receiver.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/detail/stream_operations.hpp>
#include <simplenet/io/readiness.hpp>

#include <atomic>
#include <cstddef>
#include <vector>

namespace simplenet::v0::detail {

class connect_operation;

class uring_backend final : public backend_driver {
public:
    explicit uring_backend(io_queue& owner) noexcept
        : queue_{owner}
        , receiver_{owner, entries_, poller_}
        , entries_{owner, receiver_.buffers()}
        , poller_{owner, entries_}
        , acceptor_{owner, entries_, poller_} {}

    result<> open(const loop_options& options);
    bool attempt_read(operation& op) noexcept override;
    // Not tried first: a second connect(2) for the same connection would fail with EALREADY.
    bool attempt_connect(connect_operation&) noexcept override { return false; }
    void submit(operation& op) noexcept override;
    void cancel(operation& op, stop_reason reason) noexcept override;
    void limit_passed() noexcept override { last_attempts_ = true; }
    void submit(readiness_operation& op) noexcept override;
    void cancel(readiness_operation& op) noexcept override;
    void retire(socket_record& record) noexcept override;
    void stop_accepting_ahead(socket_record& listener) noexcept override;
    void let_go(const socket_record& record) noexcept override;
    void take_ahead(socket_record& record, std::vector<std::byte>& unread) override {
        receiver_.take_ahead(record, unread);
    }
    std::size_t catch_up() noexcept override;
    std::size_t poll(std::chrono::nanoseconds timeout) noexcept override;
    void wake() noexcept override;
    void announce() noexcept override { sys::signal_eventfd(embed_.get()); }

    int native_handle() noexcept override;

    bool busy() const noexcept override { return entries_.references() != 0; }
    backend kind() const noexcept override { return backend::io_uring; }
    receive_pool& pool() noexcept override { return receiver_.pool(); }

private:
    static constexpr std::size_t most_rounds = 64;
    static constexpr std::size_t kernel_pass = 20; // pieces of deferred work at a time, since 6.13

    // --- the turn ---

    std::size_t reap() noexcept;
    [[nodiscard]] bool is_to_be_asked_again() const noexcept {
        return (receiver_.has_room_for(kernel_pass) || last_attempts_) &&
               entries_.kernel_has_more();
    }
    [[gnu::noinline]] std::size_t ask_again() noexcept;
    void dispatch(uring::completion seen) noexcept;
    void dispatch_any(subject about, void* pointer, uring::completion seen) noexcept;

    // --- operations that the kernel works on ---

    void submit_send(write_operation& op) noexcept;
    void submit_connect(connect_operation& op) noexcept;
    void submit_cancel(operation& op) noexcept;

    void completed(operation& op, uring::completion seen) noexcept;
    void cancel_completed(operation& op, int outcome) noexcept;
    /// For the wait itself or for its cancel, which returns 0, ENOENT or EALREADY; a wait never
    /// returns these.
    void wait_completed(readiness_operation& op, int outcome) noexcept;
    void record_cancel_completed(socket_record& record, int outcome) noexcept;

    /// One entry less refers to `op`. Without any, the kernel no longer uses it or its buffer.
    void release(operation& op) noexcept;
    void finish(operation& op) noexcept;
    void finish_send(write_operation& op) noexcept;
    void finish_connect(operation& op) noexcept;

    io_queue& queue_;
    receiver receiver_; // owns the buffers, which outlive the ring
    entries entries_;
    poller poller_;
    acceptor acceptor_;
    unique_fd embed_;              // readable when a completion is due; only for native_handle()
    std::atomic<int> handle_ = -1; // the same, for wake()
    // A deadline has passed since the last poll: everything that the kernel has by then counts.
    bool last_attempts_ = false;
};

} // namespace simplenet::v0::detail
