#pragma once
// httpd::access_log: a line for each request. See docs/usage/httpd-logs.md.

#include "httpd/config/configuration.hpp"
#include "httpd/log/access_entry.hpp"

#include <simplenet/core/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace httpd {

class log_file;

class error_log;

/// How an access log is written.
struct access_log_options {
    std::string path = "-"; ///< "-": standard output; "off": nowhere.
    log_format format = log_format::combined;
    /// Of lines that wait for the disk, for each thread that writes some. Bytes.
    std::size_t buffer = std::size_t{1024} * 1024;
    /// How long a line may wait for others, while there are fewer than 64 KiB. At least a
    /// millisecond.
    std::chrono::nanoseconds longest_wait = std::chrono::seconds{1};
    /// Is told when lines are lost, and when a path cannot be opened. Outlives the log. Null: none.
    error_log* errors = nullptr;
};

/// The access log of the process.
///
/// Each thread appends to a buffer of its own, without a lock or a system call; a thread of the
/// log's own writes what is there when 64 KiB have come together, and at the latest a second after
/// a line. Lines of one thread stay in order. If the disk or the reader of a pipe is too slow, the
/// buffers fill, and whole lines are dropped and counted; none is ever torn.
///
/// @par Thread safety
/// Construction and destruction: one thread. Everything else: any thread.
class access_log {
public:
    /// @par Errors
    /// - Those of open(2).
    /// - `std::errc::resource_unavailable_try_again`: no more threads.
    [[nodiscard]] static simplenet::result<access_log> open(access_log_options options);
    access_log(access_log&&) noexcept = default;
    access_log& operator=(access_log&&) = delete;
    /// Writes what waits, for two seconds at most.
    ~access_log();

    /// Whether append() does nothing now.
    [[nodiscard]] bool is_off() const noexcept;
    /// Never blocks. A line for which there is no room is dropped and counted.
    void append(const access_entry& entry) noexcept;

    /// What write_to() takes; null: `path` is "off". Changes no log.
    ///
    /// @par Errors
    /// - Those of open(2).
    [[nodiscard]] static simplenet::result<std::shared_ptr<log_file>> open_file(std::string path);
    /// Lines that are appended from here on go to `file`, in this format; those before to where
    /// they belong.
    void write_to(std::shared_ptr<log_file> file, log_format format);

    /// Opens the file again, soon, by its path: after a rotation. If that fails the old file stays,
    /// and `options.errors` is told.
    void reopen() noexcept;

    /// Lines that were lost since the beginning.
    [[nodiscard]] std::uint64_t dropped() const noexcept;

    class state; ///< Private.

private:
    explicit access_log(std::shared_ptr<state> made) noexcept
        : state_{std::move(made)} {}

    std::shared_ptr<state> state_; // null only after a move
};

} // namespace httpd
