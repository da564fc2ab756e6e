#pragma once
// queued_writer: one ordered, bounded queue in front of a stream, shared by all its writers. Layer
// stream.

#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/detail/write_queue.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// When a queued_writer reports back-pressure, and when it ends it. Bytes.
///
/// 0 < low <= high <= limit.
struct watermarks {
    std::size_t low = std::size_t{64} * 1024;
    std::size_t high = std::size_t{256} * 1024;
    std::size_t limit = std::size_t{16} * 1024 * 1024;
};

/// The result of a successful enqueue().
enum class backpressure : std::uint8_t {
    normal,
    /// The bytes were taken, but await writable() before the next enqueue(): the peer reads more
    /// slowly than you write.
    high_watermark,
};

} // namespace runtime

namespace detail {

class writer_core;

/// Awaitable of flush(), writable() and graceful_shutdown(); the contracts are documented there.
class [[nodiscard]] writer_wait final : public suspension,
                                        public list_hook<>,
                                        public awaited_from_outside<writer_wait> {
public:
    using is_leaf = void; // see with_timeout()
    enum class goal : std::uint8_t { flushed, writable, ended };

    writer_wait(writer_core& of, goal what) noexcept;
    writer_wait(writer_wait&& other) noexcept
        : suspension{}
        , list_hook{}
        , writer_{other.writer_}
        , position_{other.position_}
        , goal_{other.goal_} {}
    writer_wait& operator=(writer_wait&&) = delete;
    ~writer_wait() = default; // leaves the writer's list

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<writer_wait>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) {
        return start(caller, scope_of(caller, at));
    }
    result<> await_resume() const noexcept {
        if (error_) return fail(error_);
        return {};
    }

    void describe(std::string& text) override { text += "a queued_writer"; }
    void on_stop(stop_reason reason) noexcept override;

private:
    friend writer_core;
    bool start(std::coroutine_handle<> caller, scope& within);
    void end(std::error_code error) noexcept;

    writer_core* writer_;    // borrowed, and needed only until this is in its list
    std::uint64_t position_; // flushed: the value that `sent_` has to reach
    goal goal_;
    std::error_code error_;
};

/// A queued_writer without its stream: the queue, the marks, and the chain that sends.
///
/// Owned by its handle and, while bytes are being sent, also by the loop, so the handle may be
/// destroyed at any time. The sending coroutine starts with the first byte. Without work it is
/// parked, which does not keep the loop running; the next byte wakes it without an allocation.
class writer_core : public chain, public recycled {
public:
    writer_core(const writer_core&) = delete;
    writer_core& operator=(const writer_core&) = delete;

    [[nodiscard]] result<backpressure> enqueue(const_buffer from);
    [[nodiscard]] result<backpressure> enqueue(std::string& bytes);
    [[nodiscard]] result<backpressure> enqueue(std::vector<std::byte>& bytes);

    [[nodiscard]] std::size_t queued_bytes() const noexcept { return queue_.size(); }
    [[nodiscard]] bool high_watermark_active() const noexcept { return high_; }

    /// The handle is gone.
    void drop() noexcept;

    void run() noexcept final;
    void finished() noexcept final;
    void abandon() noexcept final;

protected:
    explicit writer_core(watermarks marks) noexcept;
    virtual ~writer_core() = default;

    /// Suspends the sending coroutine until it has work.
    class parking {
    public:
        explicit parking(writer_core& of) noexcept
            : of_{&of} {}
        static bool await_ready() noexcept { return false; }
        void await_suspend(std::coroutine_handle<> sender) noexcept { of_->park(sender); }
        static void await_resume() noexcept {}

    private:
        writer_core* of_;
    };

    // For the coroutine.
    [[nodiscard]] bool has_queued() const noexcept { return !queue_.empty(); }
    [[nodiscard]] std::size_t gather(std::span<const_buffer> into) const noexcept {
        return queue_.gather(into);
    }
    void wrote(std::size_t count) noexcept;
    void failed(std::error_code error) noexcept;
    [[nodiscard]] bool is_dropped() const noexcept { return !held_; }
    [[nodiscard]] bool is_ending() const noexcept { return phase_ == phase::ending; }
    void ended(result<> outcome) noexcept;

    [[nodiscard]] virtual task<> send() = 0;
    virtual void close_stream() noexcept = 0;

private:
    friend writer_wait;

    // open    takes bytes
    // ending  graceful_shutdown() was called: takes no more bytes
    // ended   the peer was told, too
    // broken  failed with `error_`
    enum class phase : std::uint8_t { open, ending, ended, broken };

    // unstarted  no coroutine yet
    // waking     on the ready list, to be started or resumed
    // sending    its coroutine waits for the stream, or runs
    // parked     its coroutine waits for work
    // ended      its coroutine has finished; on the ready list to be destroyed
    // done       its coroutine is destroyed
    enum class sender : std::uint8_t { unstarted, waking, sending, parked, ended, done };

    void park(std::coroutine_handle<> sender) noexcept;
    void wake_sender();
    [[nodiscard]] std::error_code refusal() const noexcept;
    [[nodiscard]] bool reached(const writer_wait& waiter) const noexcept;
    [[nodiscard]] std::error_code no_longer(const writer_wait& waiter) const noexcept;
    void tell_waiters() noexcept;
    void begin_ending();
    template <class Bytes>
    result<backpressure> enqueue_any(Bytes& bytes);

    write_queue queue_;
    const watermarks marks_;
    std::uint64_t enqueued_ = 0; // bytes, ever
    std::uint64_t sent_ = 0;     // of these
    std::error_code error_;
    phase phase_ = phase::open;
    sender sender_ = sender::unstarted;
    bool high_ = false;
    bool held_ = true; // the handle exists
    std::coroutine_handle<> parked_;
    std::optional<chain_frame<void>> frame_;
    intrusive_list<writer_wait> waiters_;
};

template <class Stream>
class writer_state final : public writer_core {
public:
    writer_state(Stream&& to, watermarks marks)
        : writer_core{marks}
        , stream{std::move(to)} {}

    Stream stream;

private:
    task<> send() override {
        std::array<const_buffer, vectored_writer<Stream> ? 16 : 1> buffers;
        for (;;) {
            while (has_queued()) {
                const std::size_t many = gather(buffers);
                result<std::size_t> count{0};
                // One buffer by send(2), which costs less than sendmsg(2). Not a conditional
                // expression: GCC 12 would await both of its arms.
                if (many == 1) {
                    count = co_await stream.write_some(buffers[0]);
                } else if constexpr (vectored_writer<Stream>) {
                    count = co_await stream.write_some(
                        std::span<const const_buffer>{buffers}.first(many));
                }
                if (!count) co_return failed(count.error());
                wrote(*count);
                // The write completed before the stop of a drop: nothing would wake a parked
                // coroutine any more.
                if (is_dropped()) co_return;
            }
            if (is_ending()) {
                if constexpr (half_closable<Stream>) {
                    ended(co_await async_shutdown_write(stream));
                }
                co_return;
            }
            co_await parking{*this};
        }
    }

    // close() of a half would also close the other half: for a half, destruction is enough.
    void close_stream() noexcept override {
        if constexpr (!is_write_half<Stream> && requires { stream.close(); }) stream.close();
    }
};

template <class Bytes>
concept adoptable = std::same_as<Bytes, std::string> || std::same_as<Bytes, std::vector<std::byte>>;

} // namespace detail

inline namespace runtime {

/// Writes to a stream in the order of the calls, without making the caller wait.
///
/// Owns the stream. enqueue() only stores the bytes. The loop sends all bytes enqueued in the same
/// turn with one call, from whichever task they come, and continues by itself while the peer takes
/// bytes. The queue is bounded: above `high` a writer should await writable(), and at `limit`
/// enqueue() takes nothing. A write error ends the writer: queued bytes are dropped, and every
/// later enqueue(), flush() and writable() reports the error.
///
/// May be moved at any time. Destroying it drops unsent bytes and closes the stream, or only the
/// writing half if the stream is a write_half; waiting flush() and writable() end with
/// operation_canceled. To have everything delivered, await flush() or graceful_shutdown() first.
/// Loop thread only.
///
/// @par Cost
/// About 1 KiB while idle. One system call for many small enqueues in a turn; no allocation in the
/// steady state.
/// @par Example
/// @snippet writing.cpp broadcast
template <async_writer Stream>
class queued_writer {
    static_assert(std::same_as<Stream, std::remove_cvref_t<Stream>>, "a queued_writer owns its "
                                                                     "stream");

public:
    using stream_type = Stream;

    /// Takes the stream over; throws std::bad_alloc.
    ///
    /// @pre Nothing else writes to the stream. 0 < marks.low <= marks.high <= marks.limit.
    explicit queued_writer(Stream stream, watermarks marks = {})
        : state_{new detail::writer_state<Stream>{std::move(stream), marks}} {}
    queued_writer(queued_writer&& other) noexcept
        : state_{std::exchange(other.state_, nullptr)} {}
    queued_writer& operator=(queued_writer&& other) noexcept {
        if (this != &other) {
            drop();
            state_ = std::exchange(other.state_, nullptr);
        }
        return *this;
    }
    ~queued_writer() { drop(); }

    /// Appends a copy of `from` to the queue; the loop sends it.
    ///
    /// Never waits, and never sends before it returns: the loop sends when the caller suspends.
    ///
    /// @pre The loop that the stream belongs to runs on this thread.
    /// @return Whether to continue: `high_watermark` once `high` bytes are queued, until fewer than
    ///         `low` are. The bytes were taken in both cases.
    ///
    /// @par Errors
    /// - `errc::queue_full`: more than `limit` bytes would be queued; nothing was taken.
    /// - `std::errc::broken_pipe`: graceful_shutdown() was called, or the peer is gone.
    /// - The error of an earlier write, which ended the writer.
    /// @par Cost
    /// A copy, into memory from a free list.
    [[nodiscard]] result<backpressure> enqueue(const_buffer from) { return state().enqueue(from); }
    /// The same for a std::string or std::vector<std::byte> that is moved in instead of copied.
    ///
    /// On failure `bytes` is unchanged. A short one is still copied, and so is one whose spare
    /// capacity exceeds an eighth of its size, because `limit` does not count spare capacity.
    template <detail::adoptable Bytes>
    [[nodiscard]] result<backpressure> enqueue(Bytes&& bytes) {
        return state().enqueue(bytes);
    }

    /// Waits until fewer than `low` bytes are queued.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// As for enqueue(), except for queue_full; operation_canceled when the writer was destroyed.
    /// @par Cancellation
    /// Ends only this wait: sending continues.
    [[nodiscard]] detail::writer_wait writable() noexcept { return wait_for(goal::writable); }

    /// Waits until the stream has taken everything that was enqueued before this call. For a socket
    /// that means the kernel: the peer may never see it.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// The error of the write; operation_canceled when the writer was destroyed.
    /// @par Cancellation
    /// Ends only this wait: sending continues.
    [[nodiscard]] detail::writer_wait flush() noexcept { return wait_for(goal::flushed); }

    /// Takes no more bytes, waits until all are sent, then tells the peer that nothing more will
    /// come. Reading from stream() remains possible.
    ///
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// The error of a write or of shutting the stream down.
    /// @par Cancellation
    /// Ends only this wait: the rest is still sent, and the peer is told. It may be awaited again.
    [[nodiscard]] detail::writer_wait graceful_shutdown() noexcept
        requires detail::half_closable<Stream>
    {
        return wait_for(goal::ended);
    }

    /// Bytes that the stream has not taken yet.
    [[nodiscard]] std::size_t queued_bytes() const noexcept { return state().queued_bytes(); }
    /// Whether the queue has reached `high` and has not yet fallen below `low`.
    [[nodiscard]] bool high_watermark_active() const noexcept {
        return state().high_watermark_active();
    }

    /// The stream, for reading, queries and closing. Do not write to it: only one writer is
    /// allowed.
    [[nodiscard]] Stream& stream() noexcept { return state().stream; }
    [[nodiscard]] const Stream& stream() const noexcept { return state().stream; }

private:
    using goal = detail::writer_wait::goal;

    [[nodiscard]] detail::writer_state<Stream>& state() const noexcept {
        SIMPLENET_EXPECTS(state_ != nullptr, "a queued_writer was used after it was moved from");
        return *state_;
    }
    [[nodiscard]] detail::writer_wait wait_for(goal what) const noexcept {
        return detail::writer_wait{state(), what};
    }
    void drop() noexcept {
        if (state_ != nullptr) std::exchange(state_, nullptr)->drop();
    }

    detail::writer_state<Stream>* state_; // null only after a move
};

template <class Stream>
queued_writer(Stream, watermarks = {}) -> queued_writer<Stream>;

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
