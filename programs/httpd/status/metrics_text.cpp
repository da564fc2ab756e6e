#include "httpd/status/metrics_text.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

namespace httpd {

namespace {

constexpr std::array<std::string_view, 6> class_names{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

/// Writes samples. The rules are those of "Exposition formats" in Prometheus' documentation.
class page {
public:
    using labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

    /// Begins a metric; its samples follow.
    void begin(std::string_view name, std::string_view type, std::string_view help) {
        name_ = name;
        text_.append("# HELP ").append(name).append(" ").append(help);
        text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
    }
    template <class Number>
    void add(Number value, labels with = {}, std::string_view suffix = {}) {
        text_.append(name_).append(suffix);
        char separator = '{';
        for (const auto& [key, text] : with) {
            text_ += separator;
            text_.append(key).append("=\"");
            add_escaped(text);
            text_ += '"';
            separator = ',';
        }
        if (separator == ',') text_ += '}';
        text_ += ' ';
        add_number(value);
        text_ += '\n';
    }
    template <class Number>
    void single(std::string_view name, std::string_view type, std::string_view help, Number value) {
        begin(name, type, help);
        add(value);
    }

    [[nodiscard]] std::string take() { return std::move(text_); }

private:
    template <class Number>
    void add_number(Number value) {
        std::array<char, 32> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
        text_.append(digits.data(), end);
    }
    /// The format is UTF-8. What is in labels comes from a configuration; a byte that is none would
    /// make Prometheus refuse the whole page, so everything above 0x7e is replaced.
    void add_escaped(std::string_view text) {
        for (const char each : text) {
            const auto value = static_cast<unsigned char>(each);
            if (each == '\\' || each == '"')
                (text_ += '\\') += each;
            else if (each == '\n')
                text_ += "\\n";
            else
                text_ += value < 0x20 || value > 0x7e ? '?' : each;
        }
    }

    std::string text_;
    std::string_view name_;
};

double seconds(std::chrono::nanoseconds duration) noexcept {
    return std::chrono::duration<double>{duration}.count();
}

void add_classes(page& to, const status_classes& of, std::string_view site = {}) {
    for (std::size_t kind = 0; kind < of.size(); ++kind) {
        if (site.empty())
            to.add(of[kind], {{"status", class_names[kind]}});
        else
            to.add(of[kind], {{"site", site}, {"status", class_names[kind]}});
    }
}

/// Buckets that are powers of two, which are ends of buckets of ours.
void add_durations(page& to, const traffic_figures& of) {
    to.begin("simplenet_httpd_request_duration_seconds", "histogram",
             "Time from the first byte of a request to the end of its answer.");
    std::uint64_t sum = 0;
    for (std::size_t index = 0; index + 1 < of.durations.size(); ++index) {
        sum += of.durations[index];
        if (index % duration_buckets::for_each_power != 0) continue;
        std::array<char, 32> text{};
        const auto end = std::to_chars(text.data(), text.data() + text.size(),
                                       seconds(duration_buckets::end_of(index)))
                             .ptr;
        to.add(sum, {{"le", std::string_view{text.data(), end}}}, "_bucket");
    }
    sum += of.durations.back();
    to.add(sum, {{"le", "+Inf"}}, "_bucket");
    to.add(seconds(of.duration_sum), {}, "_sum");
    to.add(sum, {}, "_count");
}

void add_traffic(page& to, const traffic_figures& of) {
    to.begin("simplenet_httpd_requests_total", "counter",
             "Requests that have ended, by the class of the status; none: before an answer.");
    add_classes(to, of.requests);
    to.single("simplenet_httpd_body_bytes_total", "counter", "Bytes of the bodies of answers.",
              of.bytes);
    to.single("simplenet_httpd_incomplete_answers_total", "counter",
              "Answers that have begun and were cut off.", of.incomplete);
    to.single("simplenet_httpd_tls_requests_total", "counter",
              "Requests by https, to this server or to a trusted proxy.", of.secure);
    add_durations(to, of);
    if (of.sites.empty()) return;
    to.begin("simplenet_httpd_site_requests_total", "counter",
             "Requests that a site has answered, by the class of the status.");
    for (const auto& [name, site] : of.sites)
        add_classes(to, site.requests, name);
    to.begin("simplenet_httpd_site_body_bytes_total", "counter",
             "Bytes of the bodies of a site's answers.");
    for (const auto& [name, site] : of.sites)
        to.add(site.bytes, {{"site", name}});
}

/// Servers with one address are one.
using servers_by_address = std::map<std::string, simplenet::http::server_statistics, std::less<>>;

servers_by_address by_address(const std::vector<server_figures>& servers) {
    servers_by_address all;
    for (const auto& each : servers) {
        auto& sum = all[each.address];
        const auto& from = each.statistics;
        sum.accepted += from.accepted;
        sum.refused += from.refused;
        sum.failed += from.failed;
        sum.requests += from.requests;
        sum.handshakes_failed += from.handshakes_failed;
        sum.open_by_loop.resize(std::max(sum.open_by_loop.size(), from.open_by_loop.size()));
        for (std::size_t loop = 0; loop < from.open_by_loop.size(); ++loop)
            sum.open_by_loop[loop] += from.open_by_loop[loop];
    }
    return all;
}

void add_servers(page& to, const std::vector<server_figures>& servers) {
    if (servers.empty()) return;
    const auto all = by_address(servers);
    const auto add = [&](std::string_view name, std::string_view help, auto member) {
        to.begin(name, "counter", help);
        for (const auto& [address, each] : all)
            to.add(std::uint64_t{each.*member}, {{"address", address}});
    };
    using statistics = simplenet::http::server_statistics;
    add("simplenet_httpd_connections_accepted_total", "Connections that were accepted.",
        &statistics::accepted);
    add("simplenet_httpd_connections_refused_total", "Connections that were reset at once.",
        &statistics::refused);
    add("simplenet_httpd_connections_failed_total", "Connections that ended with an error.",
        &statistics::failed);
    add("simplenet_httpd_handshakes_failed_total", "TLS handshakes that failed.",
        &statistics::handshakes_failed);
    to.begin("simplenet_httpd_connections", "gauge", "Open connections.");
    for (const auto& [address, each] : all) {
        for (std::size_t loop = 0; loop < each.open_by_loop.size(); ++loop)
            to.add(std::uint64_t{each.open_by_loop[loop]},
                   {{"address", address}, {"loop", std::to_string(loop)}});
    }
}

void add_upstreams(page& to, const std::vector<upstream_figures>& upstreams) {
    if (upstreams.empty()) return;
    // Two routes may have the same match in one site, and the same backends: one sample.
    using key = std::array<std::string_view, 3>;
    std::map<key, simplenet::http::backend_status> all;
    for (const auto& each : upstreams) {
        auto [place, is_new] = all.try_emplace({each.site, each.route, each.backend.address});
        auto& sum = place->second;
        sum.active += each.backend.active;
        sum.answered += each.backend.answered;
        sum.failures += each.backend.failures;
        if (each.backend.left_out) sum.left_out = each.backend.left_out;
    }
    const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                         auto value) {
        to.begin(name, type, help);
        for (const auto& [of, each] : all)
            to.add(value(each), {{"site", of[0]}, {"route", of[1]}, {"backend", of[2]}});
    };
    add("simplenet_httpd_backend_up", "gauge", "1: in use. 0: left out, since it has failed.",
        [](const auto& each) { return each.left_out ? 0 : 1; });
    add("simplenet_httpd_backend_active", "gauge", "Requests in progress.",
        [](const auto& each) { return each.active; });
    add("simplenet_httpd_backend_answers_total", "counter", "Requests that were answered.",
        [](const auto& each) { return each.answered; });
    add("simplenet_httpd_backend_failures_total", "counter", "Times that the backend has failed.",
        [](const auto& each) { return each.failures; });
}

void add_certificates(page& to, const std::vector<certificate_figures>& certificates) {
    if (certificates.empty()) return;
    to.begin("simplenet_httpd_certificate_expiry_timestamp_seconds", "gauge",
             "When the certificate expires, since unix epoch in seconds.");
    std::map<std::string_view, std::chrono::system_clock::time_point> all;
    for (const auto& each : certificates)
        all.emplace(each.file, each.expires);
    for (const auto& [file, expires] : all)
        to.add(seconds(expires.time_since_epoch()), {{"file", file}});
}

void add_process(page& to, const status_figures& of) {
    to.begin("simplenet_httpd_info", "gauge", "The version of the program.");
    to.add(1, {{"version", of.version}});
    to.begin("simplenet_httpd_reloads_total", "counter", "Reloads of the configuration.");
    to.add(of.reloads.succeeded, {{"result", "ok"}});
    to.add(of.reloads.failed, {{"result", "failed"}});
    to.single("simplenet_httpd_reload_latest_failed", "gauge",
              "1: the latest reload failed, and an older configuration is in use.",
              of.reloads.latest_failed ? 1 : 0);
    to.begin("simplenet_httpd_log_lines_lost_total", "counter", "Lines that a log has lost.");
    to.add(of.logs.access_lost, {{"log", "access"}});
    to.add(of.logs.error_lost, {{"log", "error"}});
    to.single("simplenet_httpd_log_messages_suppressed_total", "counter",
              "Messages beyond the limit of their kind.", of.logs.error_suppressed);
    // The names that Prometheus' own client libraries use.
    to.single("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
              of.process.resident_bytes);
    to.single("process_open_fds", "gauge", "Number of open file descriptors.",
              of.process.descriptors);
    to.single("process_max_fds", "gauge", "Maximum number of open file descriptors.",
              of.process.descriptor_limit);
    to.single("process_cpu_seconds_total", "counter",
              "Total user and system CPU time spent in seconds.", seconds(of.process.cpu_time));
    to.single("process_start_time_seconds", "gauge",
              "Start time of the process since unix epoch in seconds.",
              seconds(of.process.started.time_since_epoch()));
}

} // namespace

std::string metrics_text(const status_figures& of) {
    page made;
    add_traffic(made, of.traffic);
    add_servers(made, of.servers);
    add_upstreams(made, of.upstreams);
    add_certificates(made, of.certificates);
    add_process(made, of);
    return made.take();
}

} // namespace httpd
