#pragma once
// The lines of the access log. Used by access_log.

#include "httpd/config/configuration.hpp"
#include "httpd/log/access_entry.hpp"
#include "httpd/log/time_text.hpp"

#include <chrono>
#include <cstddef>

namespace httpd {

/// What append_line() may need. Bytes.
[[nodiscard]] std::size_t room_for_line(const access_entry& of, log_format format) noexcept;

/// Writes one line with its end. The formats are in docs/usage/httpd-logs.md. Of each text at most
/// the first 4096 bytes are written, of the target 8192, so that a client does not fill the disk
/// with its fields.
///
/// @param to  Has room_for_line() bytes.
/// @param now  When the request ended.
/// @return The end of the line.
[[nodiscard]] char* append_line(char* to, const access_entry& of, log_format format,
                                std::chrono::system_clock::time_point now,
                                time_text& times) noexcept;

} // namespace httpd
