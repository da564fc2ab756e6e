#pragma once
// The vocabulary of errors: result<T>, transfer_result, errc, and functions that pass failures on.
// Layer core. Every operation of the library reports its outcome with these types.

#include <concepts>
#include <cstddef>
#include <expected>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// A value, or the reason why there is none. Kernel errors keep their errno in
/// `std::system_category()`.
template <class T = void>
using result = std::expected<T, std::error_code>;

/// Conditions that errno cannot express. A stopped operation is `std::errc::operation_canceled`.
enum class errc {
    /// The peer has finished: it will send no more.
    end_of_stream = 1,
    /// One of the program's deadlines passed. Equals the condition `std::errc::timed_out`; TCP's
    /// own timeout is ETIMEDOUT in the system category.
    deadline_exceeded,
    /// The resolver answered: there is no such name.
    name_not_found,
    /// The resolver could not answer; trying later may help.
    name_lookup_failed,
    /// The kernel, the sandbox or the build lacks the requested backend.
    backend_unavailable,
    /// A bounded queue refused the data; nothing was taken.
    queue_full,
    /// A delimiter, line or message exceeds its stated limit.
    limit_exceeded,
};

/// The category of `errc`, named "simplenet". Any thread.
[[nodiscard]] const std::error_category& error_category() noexcept;

/// Lets a `std::error_code` be made of, and compared with, an `errc`. Any thread.
[[nodiscard]] inline std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

} // namespace simplenet::v0

template <>
struct std::is_error_code_enum<simplenet::errc> : std::true_type {};

namespace simplenet::v0 {

/// Whether `code` means this, in any category: an error of the resolver with its own message also
/// equals `errc::name_not_found`. Comparing two codes remains exact.
[[nodiscard]] inline bool operator==(const std::error_code& code, errc meaning) noexcept {
    return code == std::error_condition{static_cast<int>(meaning), error_category()};
}

} // namespace simplenet::v0

namespace simplenet::v0 {

/// Why a transfer of many bytes ended early, and how many bytes had moved by then.
struct transfer_error {
    std::error_code code;
    std::size_t transferred = 0; // bytes; for a batch, datagrams

    // NOLINTNEXTLINE(google-explicit-constructor): it converts by contract.
    operator std::error_code() const noexcept { return code; }
    /// The meaning of `code` as text.
    [[nodiscard]] std::string message() const { return code.message(); }

    friend bool operator==(const transfer_error&, const transfer_error&) noexcept = default;
    friend bool operator==(const transfer_error& left, const std::error_code& right) noexcept {
        return left.code == right;
    }
    friend bool operator==(const transfer_error& left, const std::error_condition& right) noexcept {
        return left.code == right;
    }
    friend bool operator==(const transfer_error& left, errc right) noexcept {
        return left.code == right;
    }
};

/// How much moved: the value is the whole request; an error contains the part that moved.
using transfer_result = std::expected<std::size_t, transfer_error>;

namespace detail {

template <class T>
inline constexpr bool is_expected = false;
template <class T, class E>
inline constexpr bool is_expected<std::expected<T, E>> = true;

template <class T, class E>
void check_expected(const std::expected<T, E>&);

/// Any `expected<T, E>`, or class derived from one, whose error converts to a std::error_code.
template <class T>
concept failable = requires(const std::remove_cvref_t<T>& outcome) {
    check_expected(outcome);
} && std::convertible_to<typename std::remove_cvref_t<T>::error_type, std::error_code>;

/// Out of line, so that or_throw() costs its callers one call on the cold path.
[[noreturn]] void throw_system_error(std::error_code code);
[[noreturn]] void throw_system_error(std::error_code code, const char* what);

} // namespace detail

/// The failure to return from a function whose result is a `result<T>`. Does not convert to a
/// `transfer_result`, whose failure states how much moved: `std::unexpected{transfer_error{code,
/// moved}}`.
[[nodiscard]] inline std::unexpected<std::error_code> fail(std::error_code code) noexcept {
    return std::unexpected{code};
}
[[nodiscard]] inline std::unexpected<std::error_code> fail(errc code) noexcept {
    return std::unexpected{make_error_code(code)};
}
[[nodiscard]] inline std::unexpected<std::error_code> fail(std::errc code) noexcept {
    return std::unexpected{std::make_error_code(code)};
}

/// Passes the error of `failed` on.
///
/// @pre `failed` holds no value.
template <detail::failable Expected>
[[nodiscard]] std::unexpected<std::error_code> fail(const Expected& failed) noexcept {
    return std::unexpected{static_cast<std::error_code>(failed.error())};
}

/// Returns the value of `outcome`, or throws `std::system_error` with its code.
template <detail::failable Expected>
decltype(auto) or_throw(Expected&& outcome) {
    if (!outcome) detail::throw_system_error(outcome.error());
    if constexpr (std::is_void_v<typename std::remove_cvref_t<Expected>::value_type>) {
        return;
    } else if constexpr (std::is_lvalue_reference_v<Expected>) {
        return *outcome;
    } else {
        // By value: a reference into an expiring result would dangle.
        return typename std::remove_cvref_t<Expected>::value_type(*std::forward<Expected>(outcome));
    }
}

} // namespace simplenet::v0

#pragma GCC visibility pop
