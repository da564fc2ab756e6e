#pragma once
// What the text of a host or a service can be, before anybody is asked. Layer net, private.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::detail {

/// An address, or a name that can be looked up.
struct host_name {
    std::optional<ip_address> address;
    std::string name; // as given; used if there is no address
};

/// The errors are those of async_resolve(). Asks the kernel for the index of a named interface.
[[nodiscard]] result<host_name> read_host(std::string_view text);

/// A port, or none: then `text` is a name that can be looked up.
[[nodiscard]] result<std::optional<std::uint16_t>> read_service(std::string_view text) noexcept;

} // namespace simplenet::v0::detail
