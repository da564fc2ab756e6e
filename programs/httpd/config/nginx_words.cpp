#include "httpd/config/nginx_words.hpp"

#include <algorithm>
#include <array>

namespace httpd {
namespace {

struct word {
    std::string_view directive;
    counterpart here;
};

constexpr std::array directives{
    word{"access_log", {"[log]", "access"}},
    word{"add_header", {"[[site]]", "headers"}},
    word{"auth_basic", {"auth", "realm"}},
    word{"auth_basic_user_file", {"auth", "file"}},
    word{"autoindex", {"[[site]]", "listing"}},
    word{"client_body_timeout", {"[limits]", "body_idle"}},
    word{"client_header_buffer_size", {"[limits]", "header_bytes"}},
    word{"client_header_timeout", {"[limits]", "headers_within"}},
    word{"client_max_body_size", {"[[site]]", "body"}},
    word{"disable_symlinks", {"[[site]]", "symlinks"}},
    word{"error_log", {"[log]", "error"}},
    word{"error_page", {"[[site]]", "error_pages"}},
    word{"expires", {"[[site]]", "headers"}},
    word{"fastcgi_pass", {"[[site.route]]", "fastcgi"}},
    word{"fastcgi_split_path_info", {"[[site.route]]", "path_info"}},
    word{"gzip", {"[[site]]", "compress"}},
    word{"gzip_min_length", {"compress", "minimum"}},
    word{"gzip_static", {"[[site]]", "precompressed"}},
    word{"gzip_types", {"compress", "types"}},
    word{"keepalive", {"[[site.route]]", "keep_connections"}}, // of an upstream
    word{"keepalive_requests", {"[limits]", "requests_per_connection"}},
    word{"keepalive_timeout", {"[limits]", "keep_alive"}},
    word{"large_client_header_buffers", {"[limits]", "header_bytes"}},
    word{"limit_req", {"[[site]]", "rate"}},
    word{"lingering_time", {"[limits]", "linger"}},
    word{"lingering_timeout", {"[limits]", "linger_idle"}},
    word{"location", {"[[site.route]]", "match"}},
    word{"log_format", {"[log]", "format"}},
    word{"proxy_pass", {"[[site.route]]", "proxy"}},
    word{"real_ip_header", {"[[site]]", "trusted"}},
    word{"return", {"[[site.route]]", "redirect"}},
    word{"rewrite", {"[[site.route]]", "redirect"}},
    word{"send_timeout", {"[limits]", "send_idle"}},
    word{"server", {"", "site"}},
    word{"server_name", {"[[site]]", "hosts"}},
    word{"set_real_ip_from", {"[[site]]", "trusted"}},
    word{"ssl_certificate", {"tls", "certificate"}},
    word{"ssl_certificate_key", {"tls", "key"}},
    word{"ssl_client_certificate", {"tls", "client_ca"}},
    word{"ssl_protocols", {"tls", "minimum"}},
    word{"ssl_verify_client", {"tls", "client_ca"}},
    word{"stub_status", {"[status]", "address"}}, // the name of nginx's module
    word{"try_files", {"[[site.route]]", "fallback"}},
    word{"upstream", {"[[site.route]]", "proxy"}},
    word{"worker_cpu_affinity", {"", "pin"}},
    word{"worker_processes", {"", "workers"}},
    word{"worker_shutdown_timeout", {"", "grace"}},
};

struct absent_word {
    std::string_view directive;
    std::string_view why;
};

// Those for which the closest key, or the list of all keys, would mislead.
constexpr std::array absent_directives{
    absent_word{"daemon", "the program stays in the foreground"},
    absent_word{"default_type", "types are those of the program and of /etc/mime.types"},
    absent_word{"events", "connections need no settings"},
    absent_word{"gzip_comp_level", "the level is fixed"},
    absent_word{"gzip_proxied", "answers of backends are compressed like others"},
    absent_word{"gzip_vary", "`Vary` is sent where it is needed"},
    absent_word{"http", "what is in it stands at the top of the file"},
    absent_word{"http2", "there is HTTP/1.1 only"},
    absent_word{"include", "the configuration is one file"},
    absent_word{"load_module", "there are no modules"},
    absent_word{"pid", "the program stays in the foreground, and the service manager knows it"},
    absent_word{"sendfile", "the kernel sends files in any case"},
    absent_word{"server_names_hash_bucket_size", "tables have the size that they need"},
    absent_word{"server_tokens", "there is no field `Server`"},
    absent_word{"stream", "there is no proxy for TCP"},
    absent_word{"tcp_nodelay", "it is always on"},
    absent_word{"tcp_nopush", "an answer leaves in as few packets as possible in any case"},
    absent_word{"types_hash_max_size", "tables have the size that they need"},
    absent_word{"use", "the program takes io_uring if it can; `--backend epoll` chooses"},
    absent_word{"worker_connections", "the limit is that of descriptors (`LimitNOFILE=`)"},
    absent_word{"worker_rlimit_nofile", "the program raises its limit as far as it may"},
};

} // namespace

std::optional<counterpart> counterpart_of(std::string_view directive) noexcept {
    const auto found = std::ranges::find(directives, directive, &word::directive);
    if (found == directives.end()) return std::nullopt;
    return found->here;
}

std::string_view why_absent(std::string_view directive) noexcept {
    const auto found = std::ranges::find(absent_directives, directive, &absent_word::directive);
    return found == absent_directives.end() ? std::string_view{} : found->why;
}

std::vector<std::string_view> directives_with_counterpart() {
    std::vector<std::string_view> all;
    for (const word& each : directives)
        all.push_back(each.directive);
    return all;
}

std::vector<std::string_view> directives_without_counterpart() {
    std::vector<std::string_view> all;
    for (const absent_word& each : absent_directives)
        all.push_back(each.directive);
    return all;
}

} // namespace httpd
