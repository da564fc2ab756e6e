#pragma once
// The figures in the text format of Prometheus, version 0.0.4. Used by status_server.

#include "httpd/status/figures.hpp"

#include <string>

namespace httpd {

/// The names are in docs/usage/httpd-logs.md. Any thread.
[[nodiscard]] std::string metrics_text(const status_figures& of);

} // namespace httpd
