#pragma once
// httpd::status_figures: everything that the status pages show, at a moment.

#include "httpd/status/traffic.hpp"

#include <simplenet/http/backend.hpp>
#include <simplenet/http/server.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace httpd {

/// A listener, or several that were opened with one address.
struct server_figures {
    std::string address;
    bool secure = false;
    simplenet::http::server_statistics statistics;
};

/// A backend of a route.
struct upstream_figures {
    std::string site;  ///< The first name of the site; "-": it has none.
    std::string route; ///< The match of the route, as in the configuration.
    simplenet::http::backend_status backend;
};

struct certificate_figures {
    std::string file;
    std::chrono::system_clock::time_point expires;
};

struct reload_figures {
    std::uint64_t succeeded = 0;
    std::uint64_t failed = 0;
    /// The latest one failed: the program serves by an older configuration than its file.
    bool latest_failed = false;
};

struct log_figures {
    std::uint64_t access_lost = 0;
    std::uint64_t error_lost = 0;
    std::uint64_t error_suppressed = 0;
};

/// Of the process, as the kernel tells it. What cannot be read is 0.
struct process_figures {
    std::uint64_t resident_bytes = 0;
    std::uint64_t descriptors = 0;
    std::uint64_t descriptor_limit = 0;
    std::chrono::nanoseconds cpu_time{0};
    std::chrono::system_clock::time_point started;
};

struct status_figures {
    std::string version;
    std::chrono::system_clock::time_point now;
    process_figures process;
    traffic_figures traffic;
    std::vector<server_figures> servers;
    std::vector<upstream_figures> upstreams;
    std::vector<certificate_figures> certificates;
    reload_figures reloads;
    log_figures logs;
};

/// Reads them from /proc and getrusage(2). Blocks, if there are many descriptors.
[[nodiscard]] process_figures read_process_figures();

} // namespace httpd
