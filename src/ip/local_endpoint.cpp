#include <simplenet/ip/local_endpoint.hpp>

#include "ip/local_endpoint_access.hpp"

#include <algorithm>

namespace simplenet::v0 {

result<local_endpoint> local_endpoint::parse(std::string_view path) noexcept {
    if (path.empty() || path.contains('\0')) return fail(std::errc::invalid_argument);
    if (path.size() > max_name_size) return fail(std::errc::filename_too_long);
    return detail::local_endpoint_access::path(path);
}

result<local_endpoint> local_endpoint::abstract(std::string_view name) noexcept {
    if (name.empty()) return fail(std::errc::invalid_argument);
    if (name.size() > max_name_size) return fail(std::errc::filename_too_long);
    return detail::local_endpoint_access::abstract(name);
}

std::string local_endpoint::to_string() const {
    if (is_unnamed()) return "(unnamed)";

    std::string text{detail::local_endpoint_access::bytes(*this)};
    if (is_abstract()) std::ranges::replace(text, '\0', '@');
    return text;
}

} // namespace simplenet::v0

std::size_t std::hash<simplenet::local_endpoint>::operator()(
    const simplenet::local_endpoint& endpoint) const noexcept {
    return std::hash<std::string_view>{}(simplenet::detail::local_endpoint_access::bytes(endpoint));
}
