#pragma once
// The figures as JSON, for the page. Used by status_server.

#include "httpd/status/figures.hpp"

#include <string>

namespace httpd {

/// Not a public format: it belongs to the page. Any thread.
[[nodiscard]] std::string status_json(const status_figures& of);

} // namespace httpd
