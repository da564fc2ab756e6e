#pragma once
// httpd::host_table: which site a host belongs to.

#include "httpd/config/configuration.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace httpd {

/// The host of a request without its port, and without the dot of a fully qualified name.
[[nodiscard]] std::string_view name_of_host(std::string_view host) noexcept;

/// Immutable; any thread.
class host_table {
public:
    explicit host_table(const std::vector<site>& sites);

    /// The index of the site for the host of a request, which may have a port. Names are compared
    /// without case and without a dot at their end; a name itself wins over `*.`, and of those the
    /// longest. None: no site has it, and there are several.
    [[nodiscard]] std::optional<std::size_t> find(std::string_view host) const {
        return is_single_ ? 0 : look_up(host);
    }
    /// Whether a site has the name, or has none and so all. A single site answers to others too.
    [[nodiscard]] bool is_served(std::string_view host) const { return look_up(host).has_value(); }

private:
    [[nodiscard]] std::optional<std::size_t> look_up(std::string_view host) const;

    struct text_hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };
    using map = std::unordered_map<std::string, std::size_t, text_hash, std::equal_to<>>;

    bool is_single_;
    map exact_;
    map below_; // the names below that of the key
    std::optional<std::size_t> others_;
};

} // namespace httpd
