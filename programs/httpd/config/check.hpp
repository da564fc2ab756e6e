#pragma once
// What can only be seen when a configuration is looked at as a whole, or at what it is about. Used
// by the reader.

#include "httpd/config/configuration.hpp"
#include "httpd/config/problem.hpp"

namespace httpd {

/// Listeners, sites and routes beside each other. No system calls but stat(2).
void check_configuration(const configuration& whole, problems& found);

/// Whether the workers can be what they are told to be, on this machine.
void check_workers(const configuration& whole, problems& found);

/// Whether files that have to be there can be read, and certificates be used. Blocks.
void check_files(const configuration& whole, problems& found);

} // namespace httpd
