#pragma once
// Figures of everything, for the tests of texts.

#include "httpd/status/figures.hpp"

#include <chrono>

namespace httpd::testing {

inline status_figures sample_figures() {
    using namespace std::chrono_literals;
    status_figures made;
    made.version = "1.2.3";
    made.now = std::chrono::system_clock::time_point{1'000'000s};
    made.process = {.resident_bytes = 4096,
                    .descriptors = 7,
                    .descriptor_limit = 1024,
                    .cpu_time = 1500ms,
                    .started = std::chrono::system_clock::time_point{999'000s}};
    made.traffic.requests = {1, 2, 3, 4, 5, 6};
    made.traffic.bytes = 1000;
    made.traffic.incomplete = 8;
    made.traffic.secure = 9;
    made.traffic.durations[duration_buckets::index_of(500ns)] = 1;
    made.traffic.durations[duration_buckets::index_of(1ms)] = 18;
    made.traffic.durations[duration_buckets::index_of(200s)] = 1;
    made.traffic.duration_sum = 200s;
    made.traffic.sites["example.org"] = {{0, 0, 3, 0, 0, 0}, 70};
    made.traffic.sites["hostile\"\\\n\xff"] = {{0, 0, 0, 0, 5, 0}, 0};
    simplenet::http::server_statistics statistics;
    statistics.accepted = 10;
    statistics.refused = 1;
    statistics.failed = 2;
    statistics.open = 5;
    statistics.open_by_loop = {2, 3};
    statistics.handshakes_failed = 4;
    made.servers = {{"127.0.0.1:80", false, statistics}, {"[::1]:443", true, statistics}};
    made.upstreams = {
        {"example.org", "/api/*", {.address = "127.0.0.1:9000", .active = 1, .answered = 20}},
        {"example.org",
         "*.php",
         {.address = "unix:/run/php.sock", .failures = 3, .left_out = 2500ms}}};
    made.certificates = {{"/etc/site.pem", made.now + 36h}, {"/etc/old.pem", made.now - 24h}};
    made.reloads = {5, 1, true};
    made.logs = {.access_lost = 11, .error_lost = 12, .error_suppressed = 13};
    return made;
}

} // namespace httpd::testing
