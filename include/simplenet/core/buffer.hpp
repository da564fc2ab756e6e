#pragma once
// const_buffer and mutable_buffer: borrowed bytes in contiguous memory of any type. Layer core.
// They own nothing: the memory must outlive the operation that uses it.

#include <simplenet/core/detail/contract.hpp>

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

namespace detail {

template <class T>
concept raw_byte = std::same_as<std::remove_cv_t<T>, std::byte> ||
                   std::same_as<std::remove_cv_t<T>, unsigned char>;

template <class T>
concept byte_like = raw_byte<T> || std::same_as<std::remove_cv_t<T>, char>;

// Arrays have their own constructors: a `char[N]` may or may not end with a NUL that does not
// count.
template <class Range>
concept byte_range = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                     byte_like<std::remove_reference_t<std::ranges::range_reference_t<Range>>> &&
                     !std::is_array_v<std::remove_reference_t<Range>>;

template <class Range>
concept writable_byte_range =
    byte_range<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>> &&
    (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>);

} // namespace detail

/// Borrowed bytes to write from. Trivially copyable; constant time; no allocation.
class const_buffer {
public:
    constexpr const_buffer() noexcept = default;
    /// @pre `data` points to `size` bytes that outlive every use of the buffer.
    constexpr const_buffer(const void* data, std::size_t size) noexcept
        : data_{data}
        , size_{size} {}

    // NOLINTBEGIN(google-explicit-constructor): implicit, as a view of what the caller has.

    /// From a span, string_view, string, vector, std::array and the like of std::byte, char or
    /// unsigned char. As with std::string_view, a temporary container is accepted: use the buffer
    /// in the same full expression.
    template <detail::byte_range Range>
    constexpr const_buffer(Range&& range) noexcept
        : data_{std::ranges::data(range)}
        , size_{std::ranges::size(range)} {}

    /// From a whole array of bytes.
    template <class T, std::size_t N>
        requires detail::raw_byte<T>
    constexpr const_buffer(T (&array)[N]) noexcept
        : data_{array}
        , size_{N} {}

    /// From a string literal, or a constexpr array that ends with a NUL: its text without the NUL.
    /// Any other array of char does not compile, because it is unclear where its text ends: pass a
    /// span.
    template <std::size_t N>
    consteval const_buffer(const char (&literal)[N]) noexcept
        : data_{literal}
        , size_{N - 1} {
        // Not a constant expression, so an error: the last character would be lost.
        SIMPLENET_EXPECTS(literal[N - 1] == '\0', "the array does not end in NUL");
    }
    template <std::size_t N>
    const_buffer(char (&array)[N]) = delete;

    [[nodiscard]] operator std::span<const std::byte>() const noexcept { return {data(), size_}; }

    // NOLINTEND(google-explicit-constructor)

    [[nodiscard]] const std::byte* data() const noexcept {
        return static_cast<const std::byte*>(data_);
    }
    /// Bytes.
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }

    /// @pre `count <= size()`.
    [[nodiscard]] const_buffer first(std::size_t count) const noexcept {
        SIMPLENET_EXPECTS(count <= size_, "first() reaches past the buffer");
        return {data_, count};
    }
    /// Everything after the first `offset` bytes.
    ///
    /// @pre `offset <= size()`.
    [[nodiscard]] const_buffer subspan(std::size_t offset) const noexcept {
        SIMPLENET_EXPECTS(offset <= size_, "subspan() starts past the buffer");
        return {data() + offset, size_ - offset};
    }
    /// `count` bytes after the first `offset`.
    ///
    /// @pre `offset + count <= size()`.
    [[nodiscard]] const_buffer subspan(std::size_t offset, std::size_t count) const noexcept {
        return subspan(offset).first(count);
    }

private:
    const void* data_ = nullptr; // void: a literal becomes one at compile time
    std::size_t size_ = 0;       // bytes
};

/// Borrowed bytes to read into. Trivially copyable; constant time; no allocation.
class mutable_buffer {
public:
    constexpr mutable_buffer() noexcept = default;
    /// @pre `data` points to `size` writable bytes that outlive every use of the buffer.
    constexpr mutable_buffer(void* data, std::size_t size) noexcept
        : data_{data}
        , size_{size} {}

    // NOLINTBEGIN(google-explicit-constructor): implicit, as a view of what the caller has.

    /// From a span, string, vector, std::array and the like of std::byte, char or unsigned char. A
    /// temporary container does not compile: the bytes read would be lost with it.
    template <detail::writable_byte_range Range>
    constexpr mutable_buffer(Range&& range) noexcept
        : data_{std::ranges::data(range)}
        , size_{std::ranges::size(range)} {}

    /// From a whole array of bytes. Pass an array of char as a span.
    template <class T, std::size_t N>
        requires(detail::raw_byte<T> && !std::is_const_v<T>)
    constexpr mutable_buffer(T (&array)[N]) noexcept
        : data_{array}
        , size_{N} {}

    [[nodiscard]] operator std::span<std::byte>() const noexcept { return {data(), size_}; }
    [[nodiscard]] operator const_buffer() const noexcept { return {data_, size_}; }

    // NOLINTEND(google-explicit-constructor)

    [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
    /// Bytes.
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }

    /// @pre `count <= size()`.
    [[nodiscard]] mutable_buffer first(std::size_t count) const noexcept {
        SIMPLENET_EXPECTS(count <= size_, "first() reaches past the buffer");
        return {data_, count};
    }
    /// Everything after the first `offset` bytes.
    ///
    /// @pre `offset <= size()`.
    [[nodiscard]] mutable_buffer subspan(std::size_t offset) const noexcept {
        SIMPLENET_EXPECTS(offset <= size_, "subspan() starts past the buffer");
        return {data() + offset, size_ - offset};
    }
    /// `count` bytes after the first `offset`.
    ///
    /// @pre `offset + count <= size()`.
    [[nodiscard]] mutable_buffer subspan(std::size_t offset, std::size_t count) const noexcept {
        return subspan(offset).first(count);
    }

private:
    void* data_ = nullptr;
    std::size_t size_ = 0; // bytes
};

} // namespace simplenet::v0

#pragma GCC visibility pop
