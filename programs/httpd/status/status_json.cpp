#include "httpd/status/status_json.hpp"

#include "httpd/log/escape.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace httpd {

namespace {

/// Writes JSON. The caller opens and closes, and gives each value a key, except in lists.
class json_writer {
public:
    json_writer& open(std::string_view key = {}, char bracket = '{') {
        put_key(key);
        text_ += bracket;
        is_first_ = true;
        return *this;
    }
    json_writer& open_list(std::string_view key = {}) { return open(key, '['); }
    json_writer& close(char bracket = '}') {
        text_ += bracket;
        is_first_ = false;
        return *this;
    }
    json_writer& close_list() { return close(']'); }

    json_writer& put(std::string_view key, std::string_view value) {
        put_key(key);
        text_ += '"';
        const std::size_t before = text_.size();
        text_.resize(before + escaped_room<escapes::json>(value.size()));
        const char* const end = append_escaped<escapes::json>(text_.data() + before, value);
        text_.resize(static_cast<std::size_t>(end - text_.data()));
        text_ += '"';
        return *this;
    }
    template <class Number>
        requires std::is_arithmetic_v<Number>
    json_writer& put(std::string_view key, Number value) {
        put_key(key);
        if constexpr (std::is_same_v<Number, bool>) {
            text_ += value ? "true" : "false";
        } else {
            std::array<char, 32> digits{};
            const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
            text_.append(digits.data(), end);
        }
        return *this;
    }

    [[nodiscard]] std::string take() { return std::move(text_); }

private:
    void put_key(std::string_view key) {
        if (!is_first_) text_ += ',';
        is_first_ = false;
        if (!key.empty()) text_.append("\"").append(key).append("\":");
    }

    std::string text_;
    bool is_first_ = true;
};

double seconds_of(std::chrono::nanoseconds duration) noexcept {
    return std::chrono::duration<double>{duration}.count();
}

void put_classes(json_writer& to, const status_classes& of) {
    to.open_list("requests");
    for (const auto each : of)
        to.put({}, each);
    to.close_list();
}

/// Index and count in turn, of those that are not 0; the page knows the ends of the buckets.
void put_durations(json_writer& to, const duration_counts& of) {
    to.open_list("durations");
    for (std::size_t index = 0; index < of.size(); ++index)
        if (of[index] != 0) to.put({}, index).put({}, of[index]);
    to.close_list();
}

void put_servers(json_writer& to, const std::vector<server_figures>& servers) {
    to.open_list("servers");
    for (const auto& each : servers) {
        to.open().put("address", each.address).put("secure", each.secure);
        to.put("accepted", each.statistics.accepted).put("refused", each.statistics.refused);
        to.put("failed", each.statistics.failed);
        to.put("handshakes_failed", each.statistics.handshakes_failed);
        to.open_list("open");
        for (const auto open : each.statistics.open_by_loop)
            to.put({}, open);
        to.close_list().close();
    }
    to.close_list();
}

void put_upstreams(json_writer& to, const std::vector<upstream_figures>& upstreams) {
    to.open_list("backends");
    for (const auto& each : upstreams) {
        const auto& backend = each.backend;
        to.open().put("site", each.site).put("route", each.route).put("address", backend.address);
        to.put("up", !backend.left_out).put("active", backend.active);
        to.put("answered", backend.answered).put("failures", backend.failures);
        if (backend.left_out) to.put("left_out", seconds_of(*backend.left_out));
        to.close();
    }
    to.close_list();
}

} // namespace

std::string status_json(const status_figures& of) {
    json_writer to;
    to.open().put("version", of.version);
    to.put("now", seconds_of(of.now.time_since_epoch()));
    to.put("started", seconds_of(of.process.started.time_since_epoch()));
    to.put("resident", of.process.resident_bytes).put("cpu", seconds_of(of.process.cpu_time));
    to.put("descriptors", of.process.descriptors);
    to.put("descriptor_limit", of.process.descriptor_limit);
    put_classes(to, of.traffic.requests);
    to.put("bytes", of.traffic.bytes).put("incomplete", of.traffic.incomplete);
    put_durations(to, of.traffic.durations);
    to.open_list("sites");
    for (const auto& [name, site] : of.traffic.sites) {
        to.open().put("name", name).put("bytes", site.bytes);
        put_classes(to, site.requests);
        to.close();
    }
    to.close_list();
    put_servers(to, of.servers);
    put_upstreams(to, of.upstreams);
    to.open_list("certificates");
    for (const auto& each : of.certificates) {
        using days = std::chrono::duration<double, std::chrono::days::period>;
        to.open().put("file", each.file).put("days", days{each.expires - of.now}.count()).close();
    }
    to.close_list();
    to.put("reloads", of.reloads.succeeded).put("reloads_failed", of.reloads.failed);
    to.put("reload_latest_failed", of.reloads.latest_failed);
    to.put("access_lost", of.logs.access_lost).put("error_lost", of.logs.error_lost);
    to.put("error_suppressed", of.logs.error_suppressed);
    return to.close().take();
}

} // namespace httpd
