#pragma once
// async_read_until: reads into a string until it contains a delimiter; and search_operation, which
// it shares with buffered_reader. Layer stream.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// The result of a search in the bytes read so far.
struct search_verdict {
    bool over = false;
    std::error_code error;
    std::size_t length = 0; // of the match, including its delimiter
    std::size_t shown = 0;  // of the part that the caller gets
};

// What to search for. look() gets all bytes read so far; later calls only add bytes, and it looks
// at each of them once. wanted() is the number of further bytes worth reading.

class delimiter_sought {
public:
    delimiter_sought(std::string_view delimiter, std::size_t limit)
        : delimiter_{delimiter}
        , limit_{limit} {
        SIMPLENET_EXPECTS(!delimiter.empty(), "a search for an empty delimiter");
    }
    [[nodiscard]] search_verdict look(std::string_view bytes) noexcept;
    [[nodiscard]] std::size_t wanted(std::size_t have) const noexcept { return limit_ - have; }

private:
    std::string delimiter_;
    std::size_t limit_;
    std::size_t seen_ = 0;
};

/// Bytes until `\n` or `\r\n`.
class line_sought {
public:
    explicit line_sought(std::size_t limit) noexcept;
    [[nodiscard]] search_verdict look(std::string_view bytes) noexcept;
    [[nodiscard]] std::size_t wanted(std::size_t have) const noexcept { return limit_ + 2 - have; }

private:
    std::size_t limit_; // without the end of the line
    std::size_t seen_ = 0;
};

class count_sought {
public:
    explicit count_sought(std::size_t count) noexcept
        : count_{count} {}
    [[nodiscard]] search_verdict look(std::string_view bytes) const noexcept {
        return {.over = bytes.size() >= count_, .error = {}, .length = count_, .shown = count_};
    }
    [[nodiscard]] std::size_t wanted(std::size_t have) const noexcept { return count_ - have; }

private:
    std::size_t count_;
};

/// Where async_read_until() searches, and stores what it reads. Borrows the caller's string.
class string_store {
public:
    using value_type = std::size_t;

    explicit string_store(std::string& into) noexcept
        : into_{&into} {}

    [[nodiscard]] std::string_view bytes() const noexcept { return *into_; }
    [[nodiscard]] mutable_buffer prepare(std::size_t wanted);
    void commit(std::size_t count) noexcept { into_->resize(valid_ + count); }
    [[nodiscard]] std::size_t give(const search_verdict& found) const noexcept {
        return found.length;
    }
    static void enter() noexcept {}
    static void leave() noexcept {}

private:
    std::string* into_;
    std::size_t valid_ = 0; // bytes before the space of the read in flight
};

/// Defines `is_leaf` for operations over streams whose own operations are leaves.
template <bool yes>
struct leaf_if {};
template <>
struct leaf_if<true> {
    using is_leaf = void; // see with_timeout()
};

template <class Stream>
using read_some_of = decltype(std::declval<Stream&>().read_some(mutable_buffer{}));

/// Reads from `Stream` into `Store` until `Sought` finds a match.
///
/// If the match is already there, only searches. Otherwise a coroutine reads on, in the scope of
/// the caller.
// So most calls of a buffered reader cost only a search, and those that wait cost the read and a
// frame from the recycling allocator.
template <class Stream, class Store, class Sought>
class [[nodiscard]] search_operation final
    : public suspension,
      public leaf_if<leaf<read_some_of<Stream>>>,
      public awaited_from_outside<search_operation<Stream, Store, Sought>> {
public:
    search_operation(Stream& stream, Store store, Sought sought) noexcept
        : stream_{&stream}
        , store_{store}
        , sought_{std::move(sought)} {}
    // Only idle ones move.
    search_operation(search_operation&& other) noexcept
        : stream_{other.stream_}
        , store_{other.store_}
        , sought_{std::move(other.sought_)} {}
    search_operation& operator=(search_operation&&) = delete;
    ~search_operation() {
        if (entered_) store_.leave();
    }

    static bool await_ready() noexcept { return false; }
    using awaited_from_outside<search_operation>::await_suspend;
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) {
        return start(caller, scope_of(caller, at));
    }
    bool start(std::coroutine_handle<> caller, scope& within) {
        store_.enter();
        entered_ = true;
        caller_ = caller;
        within_ = &within;
        if (within.stopped()) [[unlikely]] {
            verdict_ = {.over = true, .error = error_of(within.reason)};
            suspend(caller, within);
            within.queue->refuse(*this, within);
            return true;
        }
        if (look()) {
            if (within.queue->take_inline_turn()) return false;
            // Bytes that arrived together must not monopolise the thread.
            suspend(caller, within);
            within.queue->push(*this);
            return true;
        }
        reading_.emplace(read_on().operator co_await());
        return reading_->start(caller, within);
    }
    result<typename Store::value_type> await_resume() {
        entered_ = false;
        store_.leave();
        if (reading_) reading_->await_resume();
        if (verdict_.error) return fail(verdict_.error);
        return store_.give(verdict_);
    }

    /// Called by with_timeout(), which treats this as a leaf, or by a stop while it is already on
    /// the ready list.
    void on_stop(stop_reason reason) noexcept override {
        if (!reading_) return;
        stopped_ = reason; // the read in flight may still succeed, but it is the last one
        if (within_->current != nullptr) within_->current->on_stop(reason);
    }

private:
    bool look() noexcept {
        verdict_ = sought_.look(store_.bytes());
        return verdict_.over;
    }

    task<> read_on() {
        // Also when the frame is destroyed while it waits.
        struct room {
            Store& store;
            mutable_buffer bytes;
            std::size_t filled = 0;
            ~room() { store.commit(filled); }
        };
        while (!look()) {
            if (stopped_ != stop_reason::none) {
                verdict_.error = error_of(stopped_);
                co_return;
            }
            room space{store_, store_.prepare(sought_.wanted(store_.bytes().size()))};
            const result<std::size_t> count = co_await stream_->read_some(space.bytes);
            if (!count) {
                verdict_.error = count.error();
                co_return;
            }
            SIMPLENET_EXPECTS(*count != 0 && *count <= space.bytes.size(),
                              "a stream read nothing, or more than it could");
            space.filled = *count;
        }
    }

    Stream* stream_; // borrowed
    Store store_;
    Sought sought_;
    search_verdict verdict_;
    std::optional<task_awaiter<void>> reading_;
    stop_reason stopped_ = stop_reason::none;
    bool entered_ = false;
};

} // namespace detail

inline namespace runtime {

/// Appends bytes from `stream` to `into` until `into` contains `delimiter`.
///
/// It searches `into` first, and reads only if the delimiter is not there. A read may return more
/// than that: the bytes after the delimiter are the beginning of the next message. So remove the
/// returned length from the front of `into`, and call again with the rest. A buffered_reader does
/// the same without moving bytes.
///
/// @pre `delimiter` is not empty. No other read is in flight on `stream`. `stream` and `into`
///      outlive the await.
/// @param delimiter  Copied.
/// @param limit      The largest length including the delimiter. `into` never grows beyond it.
/// @return An awaitable of `result<std::size_t>`: the length including the delimiter.
///
/// @par Errors
/// - `errc::limit_exceeded`: the delimiter is not in the first `limit` bytes. Nothing is lost.
/// - Any other error of the stream's read_some(). All bytes read are in `into`; at the end of the
///   stream that is the unfinished rest.
/// @par Cancellation
/// Nothing is lost: bytes that were read are in `into`, and the call can be repeated.
/// @par Cost
/// Linear in the bytes for delimiters that do not repeat themselves. If the delimiter is already
/// there, no suspension; else one coroutine, whose frame is recycled. `into` grows as bytes arrive;
/// a delimiter of more than 15 characters is copied to the heap.
/// @par Example
/// @snippet streams.cpp read until
template <async_reader Stream>
[[nodiscard]] auto async_read_until(Stream& stream, std::string& into, std::string_view delimiter,
                                    std::size_t limit) {
    return detail::search_operation<Stream, detail::string_store, detail::delimiter_sought>{
        stream, detail::string_store{into}, detail::delimiter_sought{delimiter, limit}};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
