#include "httpd/serve/host_table.hpp"

#include "httpd/config/text.hpp"

#include <algorithm>
#include <array>

namespace httpd {

std::string_view name_of_host(std::string_view host) noexcept {
    if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
    host = host.substr(0, host.find(':'));
    if (host.ends_with('.')) host.remove_suffix(1);
    return host;
}

host_table::host_table(const std::vector<site>& sites)
    : is_single_{sites.size() == 1} {
    for (std::size_t index = 0; index < sites.size(); ++index) {
        if (sites[index].hosts.empty() && !others_) others_ = index;
        for (const std::string& host : sites[index].hosts) {
            const bool is_wildcard = host.starts_with("*.");
            (is_wildcard ? below_ : exact_).emplace(host.substr(is_wildcard ? 2 : 0), index);
        }
    }
}

std::optional<std::size_t> host_table::look_up(std::string_view host) const {
    constexpr std::size_t longest_name = 255; // RFC 1035, section 2.3.4
    std::array<char, longest_name> text;
    host = name_of_host(host);
    if (host.size() > text.size()) return others_;
    std::ranges::transform(host, text.begin(), lower);
    std::string_view name{text.data(), host.size()};
    if (const auto found = exact_.find(name); found != exact_.end()) return found->second;
    if (!below_.empty()) {
        for (std::size_t dot = 0; (dot = name.find('.')) != std::string_view::npos;) {
            name.remove_prefix(dot + 1);
            if (const auto found = below_.find(name); found != below_.end()) return found->second;
        }
    }
    return others_;
}

} // namespace httpd
