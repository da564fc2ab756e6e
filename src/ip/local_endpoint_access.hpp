#pragma once
// Creates local_endpoints from the bytes of a sun_path. Layer ip, private.

#include <simplenet/ip/local_endpoint.hpp>

#include <algorithm>
#include <string_view>

namespace simplenet::v0::detail {

struct local_endpoint_access {
    /// @pre `name` has at most 108 bytes.
    static local_endpoint path(std::string_view name) noexcept {
        local_endpoint made;
        std::ranges::copy(name, made.name_.begin());
        made.size_ = static_cast<std::uint8_t>(name.size());
        return made;
    }
    /// @pre `name` has at most 107 bytes.
    static local_endpoint abstract(std::string_view name) noexcept {
        local_endpoint made;
        std::ranges::copy(name, made.name_.begin() + 1);
        made.size_ = static_cast<std::uint8_t>(name.size() + 1);
        return made;
    }
    /// The bytes for sun_path, without the final NUL of a path.
    static std::string_view bytes(const local_endpoint& endpoint) noexcept {
        return {endpoint.name_.data(), endpoint.size_};
    }
};

} // namespace simplenet::v0::detail
