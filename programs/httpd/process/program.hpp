#pragma once
// httpd::program: the life of the process, from its first socket to its end.

#include "httpd/config/command_line.hpp"
#include "httpd/config/reader.hpp"

namespace httpd {

/// Serves until a signal ends it. Blocks; only on the main thread, and once.
///
/// Order: descriptors, sockets of the service manager, the user, logs, loops, sites, listeners. So
/// everything that a reload reads is read as the user of the configuration from the beginning, and
/// what that user cannot read is found when the program starts.
///
/// @param line   Is read again by each reload.
/// @param first  What it says, without an error.
/// @return The exit status: 0 after SIGTERM or SIGINT, else 1, and standard error says why.
int run_program(const command_line& line, const reading_result& first);

} // namespace httpd
