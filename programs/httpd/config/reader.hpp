#pragma once
// Reads the file of a configuration, and says everything that is wrong with it. Used at the start,
// by --check, and when the program reloads.

#include "httpd/config/configuration.hpp"
#include "httpd/config/problem.hpp"

#include <string>
#include <string_view>

namespace httpd {

struct reading_result {
    httpd::configuration configuration; ///< Complete if problems.can_start().
    httpd::problems problems;
};

/// Reads a text.
///
/// @param file  Where it comes from: relative paths begin at its directory. Absolute.
/// @param whole  Whether to look at what the text is about, too: files, certificates.
[[nodiscard]] reading_result read_text(std::string_view text, const std::string& file,
                                       bool whole = true);

/// Reads a file. That it cannot be read is one of the problems. Blocks.
[[nodiscard]] reading_result read_file(const std::string& file);

} // namespace httpd
