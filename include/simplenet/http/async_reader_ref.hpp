#pragma once
// async_reader_ref: a borrowed reader of any type. Layer http: for the bodies of requests.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/transfer.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// Refers to an async_reader of any type, or to none. Trivially copyable.
///
/// The reader is borrowed: it outlives the last read. Loop thread only.
class async_reader_ref {
public:
    /// Refers to none.
    async_reader_ref() noexcept = default;
    /// Refers to `reader`.
    template <async_reader Reader>
        requires(!std::is_const_v<Reader> && !std::same_as<Reader, async_reader_ref>)
    async_reader_ref(Reader& reader) noexcept // NOLINT(google-explicit-constructor): a reference
        : reader_{&reader}
        , read_{[](void* of, mutable_buffer into) -> task<result<std::size_t>> {
            return read(*static_cast<Reader*>(of), into);
        }} {}

    [[nodiscard]] explicit operator bool() const noexcept { return reader_ != nullptr; }

    /// Reads as the reader does.
    ///
    /// @pre There is a reader.
    /// @par Cost
    /// A coroutine, unless reads of the reader are one.
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into) const {
        return read_(reader_, into);
    }

private:
    template <class Reader>
    static task<result<std::size_t>> read(Reader& from, mutable_buffer into) {
        if constexpr (std::same_as<decltype(from.read_some(into)), task<result<std::size_t>>>) {
            return from.read_some(into);
        } else {
            return await(from, into);
        }
    }
    template <class Reader>
    static task<result<std::size_t>> await(Reader& from, mutable_buffer into) {
        co_return co_await from.read_some(into);
    }

    void* reader_ = nullptr;
    task<result<std::size_t>> (*read_)(void* of, mutable_buffer into) = nullptr;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
