#pragma once
// any_stream: a stream whose type its user does not know. Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// A leaf that can be started for a coroutine of unknown type.
template <class Operation>
concept startable_leaf =
    leaf<Operation> && requires(Operation& op, std::coroutine_handle<> caller, scope& within) {
        { op.start(caller, within) } -> std::same_as<bool>;
    };

/// A read, a write or readable() of an unknown stream, in the memory of an any_operation.
class erased_operation {
public:
    erased_operation() noexcept = default;
    erased_operation(const erased_operation&) = delete;
    erased_operation& operator=(const erased_operation&) = delete;
    virtual ~erased_operation() = default;

    /// Like await_suspend() and await_resume(); readable() gives 0.
    virtual bool start(std::coroutine_handle<> caller, scope& within) = 0;
    virtual result<std::size_t> finish() = 0;
    virtual void on_stop(stop_reason reason) noexcept = 0;
};

/// For a stream whose operations are leaves: only holds that operation.
template <class Operation>
class erased_leaf final : public erased_operation {
public:
    // From a function: an operation cannot be moved here.
    template <class Make>
    explicit erased_leaf(Make make)
        : operation_{make()} {}

    bool start(std::coroutine_handle<> caller, scope& within) override {
        return operation_.start(caller, within);
    }
    result<std::size_t> finish() override {
        if constexpr (std::same_as<decltype(operation_.await_resume()), result<>>) {
            const result<> outcome = operation_.await_resume();
            if (!outcome) return fail(outcome);
            return 0;
        } else {
            return operation_.await_resume();
        }
    }
    void on_stop(stop_reason reason) noexcept override { operation_.on_stop(reason); }

private:
    Operation operation_;
};

/// For any other stream: a coroutine in its own scope, so that a stop applies to all its awaits.
class erased_task final : public erased_operation, private suspension {
public:
    explicit erased_task(task<result<std::size_t>> body) noexcept
        : awaiter_{std::move(body).operator co_await()} {}

    bool start(std::coroutine_handle<> caller, scope& within) override {
        suspend(caller, within);
        inner_.begin(within);
        within.queue->here = &inner_;
        return awaiter_.start(caller, inner_);
    }
    result<std::size_t> finish() override {
        inner_.end();
        within_->current = nullptr;
        within_->queue->here = within_;
        return awaiter_.await_resume();
    }
    void on_stop(stop_reason reason) noexcept override { inner_.stop(reason); }

private:
    scope inner_;
    task_awaiter<result<std::size_t>> awaiter_;
};

/// Memory for one erased_operation.
// Large enough for an operation of a socket; larger operations are awaited by a coroutine.
class erased_place {
public:
    template <class T>
    static constexpr bool fits = sizeof(T) <= 192 && alignof(T) <= alignof(std::max_align_t);

    erased_place() noexcept = default;
    erased_place(const erased_place&) = delete;
    erased_place& operator=(const erased_place&) = delete;
    ~erased_place() {
        if (held_ != nullptr) std::destroy_at(held_);
    }

    template <class T, class Argument>
    void emplace(Argument&& from) {
        static_assert(fits<T>);
        held_ = ::new (static_cast<void*>(bytes_.data())) T(std::forward<Argument>(from));
    }
    [[nodiscard]] erased_operation* get() const noexcept { return held_; }

private:
    alignas(std::max_align_t) std::array<std::byte, 192> bytes_;
    erased_operation* held_ = nullptr;
};

/// A stream behind an any_stream.
class stream_model {
public:
    stream_model() noexcept = default;
    stream_model(const stream_model&) = delete;
    stream_model& operator=(const stream_model&) = delete;
    virtual ~stream_model() = default;

    virtual void read_some(erased_place& place, mutable_buffer into) = 0;
    virtual void write_some(erased_place& place, std::span<const const_buffer> from,
                            write_options options) = 0;
    virtual void readable(erased_place& place) = 0;
    [[nodiscard]] virtual result<received> try_receive() = 0;
    [[nodiscard]] virtual result<std::size_t>
    try_write_some(std::span<const const_buffer> from) = 0;
    virtual task<result<>> shutdown_write() = 0;
    virtual void close() noexcept = 0;
    /// See stream_access.
    [[nodiscard]] virtual bool is_silent(silence by) = 0;
};

template <class S>
class stream_model_of final : public stream_model {
public:
    explicit stream_model_of(S&& from)
        : stream{std::move(from)} {}

    void read_some(erased_place& place, mutable_buffer into) override {
        make(place, [this, into] { return stream.read_some(into); });
    }
    void write_some(erased_place& place, std::span<const const_buffer> from,
                    write_options options) override {
        if constexpr (requires { stream.write_some(from); }) {
            if (from.size() > 1) {
                return make(place, [this, from, options] {
                    return write_some_with(stream, from, options);
                });
            }
        }
        const const_buffer first = first_of(from);
        make(place, [this, first, options] { return write_some_with(stream, first, options); });
    }
    void readable(erased_place& place) override {
        if constexpr (ready_reader<S>) {
            make(place, [this] { return stream.readable(); });
        } else {
            place.emplace<erased_task>(not_supported());
        }
    }
    [[nodiscard]] result<received> try_receive() override {
        if constexpr (ready_reader<S>) {
            return stream.try_receive();
        } else {
            return fail(std::errc::operation_would_block);
        }
    }
    [[nodiscard]] result<std::size_t> try_write_some(std::span<const const_buffer> from) override {
        if constexpr (requires { stream.try_write_some(from); }) {
            if constexpr (ready_writer<S>) {
                if (from.size() == 1) return stream.try_write_some(from.front());
            }
            return stream.try_write_some(from);
        } else if constexpr (ready_writer<S>) {
            return stream.try_write_some(first_of(from));
        } else {
            return fail(std::errc::operation_would_block);
        }
    }
    task<result<>> shutdown_write() override {
        if constexpr (requires { async_shutdown_write(stream); }) {
            co_return co_await async_shutdown_write(stream);
        } else {
            co_return fail(std::errc::operation_not_supported);
        }
    }
    void close() noexcept override {
        if constexpr (requires { stream.close(); }) stream.close();
    }
    [[nodiscard]] bool is_silent(silence by) override {
        if constexpr (requires { stream_access::is_silent(stream, by); }) {
            return stream_access::is_silent(stream, by);
        } else {
            const result<received> there = try_receive();
            return !there && there.error() == std::errc::operation_would_block;
        }
    }

    S stream;

private:
    template <class Make>
    static void make(erased_place& place, Make start) {
        using operation = decltype(start());
        if constexpr (startable_leaf<operation>) {
            if constexpr (erased_place::fits<erased_leaf<operation>>) {
                return place.emplace<erased_leaf<operation>>(start);
            }
        }
        place.emplace<erased_task>(await(start));
    }
    template <class Make>
    static task<result<std::size_t>> await(Make start) {
        const auto outcome = co_await start();
        if constexpr (std::same_as<decltype(outcome), const result<>>) {
            if (!outcome) co_return fail(outcome);
            co_return std::size_t{0};
        } else {
            co_return outcome;
        }
    }
    static task<result<std::size_t>> not_supported() {
        co_return fail(std::errc::operation_not_supported);
    }
    static const_buffer first_of(std::span<const const_buffer> from) noexcept {
        for (const const_buffer& each : from) {
            if (!each.empty()) return each;
        }
        return {};
    }
};

/// An operation of an any_stream.
class any_operation : public suspension, public awaited_from_outside<any_operation> {
public:
    using is_leaf = void; // see with_timeout()

    /// readable().
    explicit any_operation(stream_model* of) noexcept
        : model_{of}
        , kind_{kind::waits} {}
    any_operation(stream_model* of, mutable_buffer into) noexcept
        : model_{of}
        , kind_{kind::reads}
        , into_{into} {}
    any_operation(stream_model* of, const_buffer from, write_options options) noexcept
        : model_{of}
        , kind_{kind::writes}
        , options_{options}
        , one_{from} {}
    any_operation(stream_model* of, std::span<const const_buffer> from,
                  write_options options) noexcept
        : model_{of}
        , kind_{kind::writes}
        , options_{options}
        , several_{from} {}
    any_operation& operator=(any_operation&&) = delete;

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<any_operation>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) {
        return start(caller, scope_of(caller, at));
    }
    bool start(std::coroutine_handle<> caller, scope& within) {
        if (model_ == nullptr) {
            return misused(caller, within, "an operation on a stream that was moved from");
        }
        switch (kind_) {
        case kind::waits:
            model_->readable(place_);
            break;
        case kind::reads:
            model_->read_some(place_, into_);
            break;
        case kind::writes:
            model_->write_some(place_, several_.data() == nullptr ? std::span{&one_, 1} : several_,
                               options_);
            break;
        }
        return place_.get()->start(caller, within);
    }

    void on_stop(stop_reason reason) noexcept override { place_.get()->on_stop(reason); }

protected:
    // Only idle ones move.
    any_operation(any_operation&& other) noexcept
        : model_{other.model_}
        , kind_{other.kind_}
        , options_{other.options_}
        , into_{other.into_}
        , one_{other.one_}
        , several_{other.several_} {}
    ~any_operation() = default;

    result<std::size_t> finish() { return place_.get()->finish(); }

private:
    enum class kind : std::uint8_t { waits, reads, writes };

    stream_model* model_; // borrowed; null for a stream that was moved from
    kind kind_;
    write_options options_;
    mutable_buffer into_;
    const_buffer one_;
    std::span<const const_buffer> several_; // or, if it has no data, the one
    erased_place place_;
};

/// Awaitable of any_stream::read_some() and write_some().
class [[nodiscard]] any_transfer final : public any_operation {
public:
    using any_operation::any_operation;
    result<std::size_t> await_resume() { return finish(); }
};

/// Awaitable of any_stream::readable().
class [[nodiscard]] any_readable final : public any_operation {
public:
    using any_operation::any_operation;
    result<> await_resume() {
        if (const result<std::size_t> outcome = finish(); !outcome) return fail(outcome);
        return {};
    }
};

} // namespace detail

inline namespace runtime {

/// A stream of any type that can read and write: a socket, TLS over a socket, a duplex in a test.
///
/// Owns the stream. Movable, even with operations in flight; destroying it destroys the stream,
/// which closes it. Operations behave as those of the stream; at most one reader and one writer at
/// a time. Loop thread only.
///
/// @par Cost
/// Creating one costs one allocation. Operations of this library's streams cost one to three extra
/// indirect calls and allocate nothing. Operations that are coroutines cost one more coroutine,
/// whose frame is recycled.
/// @par Example
/// @snippet streams.cpp any
class any_stream {
public:
    /// Takes `stream`.
    template <class S>
        requires(!std::same_as<S, any_stream> && async_reader<S> && async_writer<S> &&
                 std::move_constructible<S>)
    explicit any_stream(S stream)
        : model_{std::make_unique<detail::stream_model_of<S>>(std::move(stream))} {}

    /// Reads at least one byte and at most `into.size()`, as the stream does.
    ///
    /// @pre `into` is not empty, and no other read is in flight.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes read, at least 1.
    [[nodiscard]] detail::any_transfer read_some(mutable_buffer into) noexcept {
        SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
        return {model_.get(), into};
    }
    /// Waits until something is there and takes nothing, as the stream does.
    ///
    /// @pre No read is in flight.
    /// @return An awaitable of `result<>`.
    ///
    /// @par Errors
    /// Those of the stream; `std::errc::operation_not_supported` if it is no ready_reader.
    [[nodiscard]] detail::any_readable readable() noexcept {
        return detail::any_readable{model_.get()};
    }
    /// Takes what is there already, as the stream does.
    ///
    /// @par Errors
    /// Those of the stream; `std::errc::operation_would_block`, whatever is there, if it is no
    /// ready_reader.
    [[nodiscard]] result<received> try_receive() { return model().try_receive(); }

    /// Writes at least one byte of `from`, as the stream does; 0 if `from` is empty. A stream whose
    /// write_some() takes no options ignores them.
    ///
    /// @pre No other write is in flight.
    /// @return An awaitable of `result<std::size_t>`: the number of bytes that the stream took.
    [[nodiscard]] detail::any_transfer write_some(const_buffer from,
                                                  write_options options = {}) noexcept {
        return {model_.get(), from, options};
    }
    /// The same for several buffers. If the stream takes only one buffer, writes the first one that
    /// is not empty.
    ///
    /// @param from  Borrowed until the await returns, including the array of buffers.
    [[nodiscard]] detail::any_transfer write_some(std::span<const const_buffer> from,
                                                  write_options options = {}) noexcept {
        return {model_.get(), from, options};
    }

    /// Writes what the stream takes now, without waiting.
    ///
    /// @pre No write is in flight.
    ///
    /// @par Errors
    /// Those of the stream; `std::errc::operation_would_block`, whatever room there is, if it is no
    /// ready_writer.
    [[nodiscard]] result<std::size_t> try_write_some(const_buffer from) {
        return model().try_write_some({&from, 1});
    }
    /// The same for several buffers. If the stream takes only one buffer, writes the first one that
    /// is not empty.
    [[nodiscard]] result<std::size_t> try_write_some(std::span<const const_buffer> from) {
        return model().try_write_some(from);
    }

    /// Tells the peer that nothing more will be sent; reading continues.
    ///
    /// @par Errors
    /// Those of the stream; `std::errc::operation_not_supported` if it cannot do that.
    [[nodiscard]] task<result<>> shutdown_write() { return model().shutdown_write(); }

    /// Closes the stream. Does nothing if it has no close(): destroy it to close it.
    void close() noexcept {
        if (model_) model_->close();
    }

    /// The stream if it is an `S`, else null.
    template <class S>
    [[nodiscard]] S* target() noexcept {
        auto* const held = dynamic_cast<detail::stream_model_of<S>*>(model_.get());
        return held == nullptr ? nullptr : &held->stream;
    }

private:
    friend detail::stream_access;
    [[nodiscard]] bool is_silent(detail::silence by) const {
        return model_ != nullptr && model_->is_silent(by);
    }
    [[nodiscard]] detail::stream_model& model() const noexcept {
        SIMPLENET_EXPECTS(model_ != nullptr, "an operation on a stream that was moved from");
        return *model_;
    }

    std::unique_ptr<detail::stream_model> model_; // null only after a move
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
