#pragma once
// fastcgi_settings: the options of a gateway, with everything they refer to. Layer http, private.

#include "http/fastcgi/record.hpp"

#include <simplenet/http/fastcgi.hpp>
#include <simplenet/ip/address_set.hpp>

#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Shared by the loops. Does not change.
struct fastcgi_settings {
    fastcgi_settings(const fastcgi_options& options, std::string_view prefix);

    /// Whether the path leads to a script.
    [[nodiscard]] bool has_scripts() const noexcept { return !document_root.empty(); }

    fastcgi_options options;            // without its views
    std::string root;                   // where scripts are looked for; empty: nowhere
    std::string document_root;          // as the backend sees it; no slash at its end
    bool root_may_be_elsewhere = false; // script_root: it need not exist here
    std::string index;
    std::string prefix; // of an application; no slash at its end
    std::string server_name;
    address_set trusted;
    std::string temporary_directory;
    std::string first_params; // that are the same in each request, encoded
    std::string last_params;  // likewise, and win over others
};

/// Appends a variable to `params`.
void append_param(std::string& params, std::string_view name, std::string_view value);

} // namespace simplenet::v0::http::detail
