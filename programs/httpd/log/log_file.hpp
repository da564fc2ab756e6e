#pragma once
// httpd::log_file: the file, pipe or terminal that a log is written to. Used by the logs' writers.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace httpd {

/// How long the writer of a log waits for the reader of a pipe.
inline constexpr std::chrono::milliseconds pipe_patience{100};

/// Where a log goes. Appends, so that several processes may write to one file.
///
/// One thread at a time, with all signals blocked: SIGPIPE and SIGXFSZ, which a write may raise,
/// then end nothing.
class log_file {
public:
    /// @param path  "-": the descriptor `standard`, which is never closed. A file is made with the
    ///              mode 0640.
    ///
    /// @par Errors
    /// - Those of open(2). ENXIO: a named pipe without a reader.
    [[nodiscard]] static simplenet::result<std::shared_ptr<log_file>> open(std::string path,
                                                                           int standard);

    /// Writes as much as can be written, whole lines with each write(2) as long as a line fits.
    ///
    /// Writes to anything but a regular file wait at most `patience` for a reader, and never block
    /// longer: they write as much as a pipe takes at once (PIPE_BUF, pipe(7)).
    ///
    /// @param lines  Ends with a line's end.
    /// @return The bytes that were written. If not all: `why` tells the reason.
    [[nodiscard]] std::size_t write(std::string_view lines, std::chrono::milliseconds patience,
                                    std::error_code& why) noexcept;

    /// Opens the path again; on failure the old file stays.
    ///
    /// @return False for "-", where lines go on as before.
    [[nodiscard]] simplenet::result<bool> reopen();

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    explicit log_file(std::string path) noexcept
        : path_{std::move(path)} {}
    [[nodiscard]] int fd() const noexcept { return owned_ ? owned_.get() : standard_; }
    void look_at() noexcept;

    std::string path_;
    simplenet::unique_fd owned_; // none: "-"
    int standard_ = -1;
    bool is_regular_ = false;
};

} // namespace httpd
