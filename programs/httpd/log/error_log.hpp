#pragma once
// httpd::error_log: what the program has to say. See docs/usage/httpd-logs.md.

#include "httpd/config/configuration.hpp"

#include <simplenet/core/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <variant>

namespace httpd {

class log_file;

/// A key and a value behind a message. The value is borrowed; a text comes from outside, and may
/// contain any byte.
class log_field {
public:
    using value_type = std::variant<std::string_view, std::int64_t, std::uint64_t, std::error_code>;

    // Not explicit: fields are written in braces.
    constexpr log_field(std::string_view key, std::string_view text) noexcept
        : key_{key}
        , value_{text} {}
    template <std::integral Number>
    constexpr log_field(std::string_view key, Number number) noexcept
        : key_{key} {
        if constexpr (std::signed_integral<Number>)
            value_ = std::int64_t{number};
        else
            value_ = std::uint64_t{number};
    }
    /// Its message, as text.
    log_field(std::string_view key, std::error_code error) noexcept
        : key_{key}
        , value_{error} {}

    [[nodiscard]] std::string_view key() const noexcept { return key_; }
    [[nodiscard]] const value_type& value() const noexcept { return value_; }

private:
    std::string_view key_; // a literal of ours
    value_type value_;
};

/// The text of a message: a literal, so that it says what kind of message this is, and contains
/// nothing from outside.
class log_message {
public:
    template <std::size_t Size>
    consteval log_message(const char (&literal)[Size]) // NOLINT(google-explicit-constructor)
        : text_{literal, Size - 1} {}

    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    std::string_view text_;
};

/// How an error log is written.
struct error_log_options {
    std::string path = "-"; ///< "-": standard error; "off": nowhere.
    log_level level = log_level::info;
    /// Messages of one kind in a second; what exceeds that is counted, and told in one line. 0: no
    /// limit.
    unsigned per_second = 20;
    /// Of messages that wait, for each thread that writes some. Bytes.
    std::size_t buffer = std::size_t{64} * 1024;
};

/// The error log of the process: lines `2026-11-26T20:31:05.123Z level message key=value`.
///
/// write() never blocks: it puts the message into a buffer of the calling thread, and a thread of
/// the log's own writes it. If that cannot keep up, messages are dropped and counted, and the next
/// line says how many.
///
/// @par Thread safety
/// Construction and destruction: one thread. Everything else: any thread.
class error_log {
public:
    /// @par Errors
    /// - Those of open(2).
    /// - `std::errc::resource_unavailable_try_again`: no more threads.
    [[nodiscard]] static simplenet::result<error_log> open(error_log_options options);
    error_log(error_log&&) noexcept = default;
    error_log& operator=(error_log&&) = delete;
    /// Writes what waits, for two seconds at most.
    ~error_log();

    /// Whether messages of this level are written: before fields are collected that cost something.
    [[nodiscard]] bool is_enabled(log_level level) const noexcept;
    /// Not in a signal handler.
    void write(log_level level, log_message message,
               std::initializer_list<log_field> fields = {}) noexcept;

    /// What write_to() takes; null: `path` is "off". Changes no log.
    ///
    /// @par Errors
    /// - Those of open(2).
    [[nodiscard]] static simplenet::result<std::shared_ptr<log_file>> open_file(std::string path);
    /// What has not been written yet, and all that follows, goes to `file`. A line of which the
    /// file before has a part is whole in the new one.
    void write_to(std::shared_ptr<log_file> file, log_level level);

    /// Opens the file again, soon, by its path: after a rotation. If that fails the old file stays,
    /// and says so.
    void reopen() noexcept;

    /// Messages that were lost since the beginning; not those of the limit of their kind.
    [[nodiscard]] std::uint64_t dropped() const noexcept;
    /// Messages beyond the limit of their kind.
    [[nodiscard]] std::uint64_t suppressed() const noexcept;

    class state; ///< Private.

private:
    explicit error_log(std::shared_ptr<state> made) noexcept
        : state_{std::move(made)} {}

    std::shared_ptr<state> state_; // null only after a move
};

} // namespace httpd
