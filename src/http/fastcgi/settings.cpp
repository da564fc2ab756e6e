#include "http/fastcgi/settings.hpp"

#include "http/gateway/spool_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace simplenet::v0::http::detail {

namespace {

[[nodiscard]] std::string_view without_slash(std::string_view path) noexcept {
    while (path.ends_with('/'))
        path.remove_suffix(1);
    return path;
}

/// Absolute and without `..`, which PHP refuses in the path of a script. Symbolic links that are
/// not followed by `..` stay: a deployment may change where they lead to.
[[nodiscard]] std::string without_parents(std::string_view path) {
    if (path.empty()) return {};
    std::error_code failed;
    const std::filesystem::path whole = std::filesystem::absolute(path, failed);
    std::filesystem::path resolved;
    for (const std::filesystem::path& each : whole) {
        resolved /= each;
        if (!failed && each == "..") resolved = std::filesystem::canonical(resolved, failed);
    }
    return failed ? std::string{path} : resolved.string();
}

} // namespace

void append_param(std::string& params, std::string_view name, std::string_view value) {
    std::array<char, 8> lengths;
    char* const end = fastcgi::write_param_lengths(lengths.data(), name.size(), value.size());
    params.append(lengths.data(), end).append(name).append(value);
}

fastcgi_settings::fastcgi_settings(const fastcgi_options& from, std::string_view application)
    : options{from}
    , root{without_parents(from.root)}
    , document_root{root}
    , index{from.index}
    , prefix{without_slash(application)}
    , server_name{from.server_name}
    , trusted{from.trusted == nullptr ? address_set{} : *from.trusted}
    , temporary_directory{from.temporary_directory.empty()
                              ? default_temporary_directory()
                              : std::string{from.temporary_directory}} {
    if (!from.script_root.empty()) {
        root = document_root = from.script_root;
        root_may_be_elsewhere = true;
    }
    // The root of the file system: DOCUMENT_ROOT is empty, and the paths begin with their slash.
    document_root = without_slash(document_root);
    if (document_root.empty() && !root.empty()) document_root = "/.";
    options.backends = {};
    options.root = options.script_root = options.index = options.server_name = {};
    options.temporary_directory = {};
    options.params = {};
    options.trusted = nullptr;
    options.connections = std::max<std::size_t>(options.connections, 1);

    append_param(first_params, "GATEWAY_INTERFACE", "CGI/1.1");
    append_param(first_params, "SERVER_SOFTWARE", "simplenet");
    // PHP built with --enable-force-cgi-redirect refuses to run without it.
    append_param(first_params, "REDIRECT_STATUS", "200");
    if (has_scripts()) append_param(first_params, "DOCUMENT_ROOT", document_root);
    if (!server_name.empty()) append_param(first_params, "SERVER_NAME", server_name);
    for (const field& each : from.params)
        append_param(last_params, each.name, each.value);
}

} // namespace simplenet::v0::http::detail
