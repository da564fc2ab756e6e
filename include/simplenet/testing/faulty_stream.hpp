#pragma once
// faulty_stream: a stream with scripted faults, for tests of protocols. Layer testing.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/detail/saturated.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/coro/detail/refusal.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0::testing {

template <class S>
    requires async_reader<S> && async_writer<S>
class faulty_stream;

/// The script for the reads, or for the writes, of a faulty_stream. Calls count from 1, bytes from
/// 0; everything may be changed between calls. Several rules for one call apply in this order:
/// hook, delay, error, size.
class fault_script {
public:
    /// Every call moves at most `bytes` bytes.
    ///
    /// @pre At least 1.
    fault_script& at_most(std::size_t bytes);
    /// The next calls move at most these numbers of bytes, in order; later calls are not affected.
    ///
    /// @pre Each is at least 1.
    fault_script& pieces(std::vector<std::size_t> bytes);
    /// Every call moves at most a random number of bytes from 1 to `most`; the same for the same
    /// seed.
    ///
    /// @pre `most` is at least 1.
    fault_script& random_pieces(std::uint32_t seed, std::size_t most);

    /// The call with this number moves nothing and fails; the next one proceeds normally.
    fault_script& fail_call(std::size_t number, std::error_code error);
    /// After that many bytes every call fails: a connection that breaks, or with
    /// `errc::end_of_stream` a peer that stops midway.
    fault_script& fail_at_byte(std::size_t offset, std::error_code error);

    /// Delays the call with this number, on the loop's clock; a stop ends the delay.
    template <class Rep, class Period>
    fault_script& delay_call(std::size_t number, std::chrono::duration<Rep, Period> delay) {
        delays_[number] = detail::saturated(delay);
        return *this;
    }
    /// Delays every call.
    template <class Rep, class Period>
    fault_script& delay_each(std::chrono::duration<Rep, Period> delay) {
        delay_ = detail::saturated(delay);
        return *this;
    }

    /// Runs when the call with this number begins, for example to stop a task or to close
    /// something.
    fault_script& before_call(std::size_t number, std::function<void()> hook);

    /// The number of calls so far, including one in flight.
    [[nodiscard]] std::size_t calls() const noexcept { return calls_; }
    /// The number of bytes moved.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
    template <class S>
        requires async_reader<S> && async_writer<S>
    friend class faulty_stream;

    struct verdict {
        std::chrono::nanoseconds delay{};
        std::error_code error;
        std::size_t most = 0;
    };
    [[nodiscard]] verdict next_call();
    [[nodiscard]] bool fails_next() const noexcept {
        return errors_.contains(calls_ + 1) || (break_ && bytes_ >= break_->first);
    }
    void moved(std::size_t count) noexcept { bytes_ += count; }

    std::size_t most_ = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> pieces_; // in reverse order
    std::size_t random_most_ = 0;     // 0: no random sizes
    std::mt19937 dice_;
    std::map<std::size_t, std::error_code> errors_;
    std::optional<std::pair<std::size_t, std::error_code>> break_;
    std::chrono::nanoseconds delay_{};
    std::map<std::size_t, std::chrono::nanoseconds> delays_;
    std::map<std::size_t, std::function<void()>> hooks_;
    std::size_t calls_ = 0;
    std::size_t bytes_ = 0;
};

/// Any stream, with faults: short reads and writes, errors, delays and stops at scripted points.
///
/// Owns its stream; without a script it changes nothing. Around one end of a duplex() it tests a
/// protocol without sockets and without sleeping. Movable, even with operations in flight;
/// destroying it closes the stream. Loop thread only.
///
/// @par Cost
/// A coroutine for each operation: for tests.
/// @par Example
/// @snippet testing.cpp faulty
template <class S>
    requires async_reader<S> && async_writer<S>
class faulty_stream {
public:
    explicit faulty_stream(S stream)
        : state_{std::make_shared<state>(std::move(stream))} {}
    faulty_stream(faulty_stream&&) noexcept = default;
    faulty_stream& operator=(faulty_stream&& other) noexcept {
        if (this != &other) {
            close();
            state_ = std::move(other.state_);
        }
        return *this;
    }
    ~faulty_stream() { close(); }

    [[nodiscard]] fault_script& reads() noexcept { return self().reads; }
    [[nodiscard]] fault_script& writes() noexcept { return self().writes; }

    /// Reads from the stream, or does what the script says. A stop beats a scripted error.
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into) {
        SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
        return read(shared(), into);
    }
    /// Writes to the stream, or does what the script says.
    [[nodiscard]] task<result<std::size_t>> write_some(const_buffer from,
                                                       write_options options = {}) {
        return write(shared(), from, options);
    }
    /// Writes from the first nonempty buffer: always a short write.
    [[nodiscard]] task<result<std::size_t>> write_some(std::span<const const_buffer> from,
                                                       write_options options = {}) {
        return write_some(first_of(from), options);
    }

    /// Waits until the next read will not wait: something is there, or the script lets it fail.
    [[nodiscard]] task<result<>> readable()
        requires ready_reader<S>
    {
        return wait(shared());
    }
    /// Takes what is there, or does what the script says, except for delays. Counts as a read even
    /// if nothing is there.
    [[nodiscard]] result<received> try_receive()
        requires ready_reader<S>
    {
        state& of = self();
        const turn taken{of.reading};
        const fault_script::verdict fault = of.reads.next_call();
        if (fault.error) return fail(fault.error);
        if (of.rest.empty()) {
            result<received> found = of.stream.try_receive();
            if (!found) return found;
            of.rest = *std::move(found);
        }
        return of.take(fault.most);
    }
    /// Writes without waiting, or does what the script says, except for delays. Counts as a write
    /// even if there is no room.
    [[nodiscard]] result<std::size_t> try_write_some(const_buffer from)
        requires ready_writer<S>
    {
        state& of = self();
        const turn taken{of.writing};
        const fault_script::verdict fault = of.writes.next_call();
        if (fault.error) return fail(fault.error);
        const auto count = of.stream.try_write_some(from.first(std::min(from.size(), fault.most)));
        if (count) of.writes.moved(*count);
        return count;
    }
    /// Writes from the first nonempty buffer.
    [[nodiscard]] result<std::size_t> try_write_some(std::span<const const_buffer> from)
        requires ready_writer<S>
    {
        return try_write_some(first_of(from));
    }

    [[nodiscard]] auto shutdown_write()
        requires requires(S& whole) { async_shutdown_write(whole); }
    {
        return async_shutdown_write(self().stream);
    }
    void close() noexcept {
        if constexpr (requires(S& whole) { whole.close(); }) {
            if (!state_) return;
            state_->closed.set();
            state_->rest.release();
            state_->stream.close();
        }
    }

    /// The underlying stream, for operations without faults.
    [[nodiscard]] S& stream() noexcept { return self().stream; }

private:
    struct state {
        explicit state(S&& from)
            : stream{std::move(from)} {}
        /// At most `most` bytes of the rest.
        [[nodiscard]] received take(std::size_t most) noexcept {
            received part = rest.split(std::min(rest.size(), most));
            reads.moved(part.size());
            return part;
        }

        S stream;
        received rest; // of try_receive(), if the script let it return a part only
        fault_script reads;
        fault_script writes;
        async_event closed;
        bool reading = false;
        bool writing = false;
    };
    /// Ensures one reader and one writer, even during a scripted delay.
    class turn {
    public:
        explicit turn(bool& taken) noexcept
            : taken_{taken} {
            SIMPLENET_EXPECTS(!std::exchange(taken, true),
                              "a second read or write on a stream that has one in flight");
        }
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;
        ~turn() { taken_ = false; }

    private:
        bool& taken_;
    };

    [[nodiscard]] const std::shared_ptr<state>& shared() const noexcept {
        SIMPLENET_EXPECTS(state_ != nullptr, "an operation on a stream that was moved from");
        return state_;
    }
    [[nodiscard]] state& self() const noexcept { return *shared(); }
    [[nodiscard]] static const_buffer first_of(std::span<const const_buffer> from) noexcept {
        const auto first = std::find_if(from.begin(), from.end(),
                                        [](const const_buffer& each) { return !each.empty(); });
        return first == from.end() ? const_buffer{} : *first;
    }

    /// Waits, and returns whether close() ended the wait. After a stop the stream itself reports
    /// the reason.
    static task<bool> closed_meanwhile(state& of, std::chrono::nanoseconds delay) {
        if (delay <= std::chrono::nanoseconds::zero() || of.closed.is_set()) co_return false;
        const auto closed = co_await with_timeout(of.closed.wait(), delay);
        co_return closed.has_value();
    }

    // They share the state, because the handle may be destroyed meanwhile.
    static task<result<>> wait(std::shared_ptr<state> of) {
        const turn taken{of->reading};
        if (!of->rest.empty() || of->reads.fails_next()) co_return co_await detail::refusal{};
        co_return co_await of->stream.readable();
    }
    static task<result<std::size_t>> read(std::shared_ptr<state> of, mutable_buffer into) {
        const turn taken{of->reading};
        const fault_script::verdict fault = of->reads.next_call();
        if (co_await closed_meanwhile(*of, fault.delay)) {
            co_return fail(std::errc::operation_canceled);
        }
        if (fault.error && !co_await this_task::stop_requested()) co_return fail(fault.error);
        if (!of->rest.empty()) {
            const result<> refused = co_await detail::refusal{};
            if (!refused) co_return fail(refused);
            const received part = of->take(std::min(into.size(), fault.most));
            std::copy_n(part.data(), part.size(), into.data());
            co_return part.size();
        }
        const auto count =
            co_await of->stream.read_some(into.first(std::min(into.size(), fault.most)));
        if (count) of->reads.moved(*count);
        co_return count;
    }
    static task<result<std::size_t>> write(std::shared_ptr<state> of, const_buffer from,
                                           write_options options) {
        const turn taken{of->writing};
        const fault_script::verdict fault = of->writes.next_call();
        if (co_await closed_meanwhile(*of, fault.delay)) {
            co_return fail(std::errc::operation_canceled);
        }
        if (fault.error && !co_await this_task::stop_requested()) co_return fail(fault.error);
        const auto count = co_await detail::write_some_with(
            of->stream, from.first(std::min(from.size(), fault.most)), options);
        if (count) of->writes.moved(*count);
        co_return count;
    }

    std::shared_ptr<state> state_; // null only after a move
};

} // namespace simplenet::v0::testing

#pragma GCC visibility pop
