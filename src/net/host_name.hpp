#pragma once
// Checks the text of a host or a service before a lookup. Layer net, private.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::detail {

/// An address, or a name to look up.
struct host_name {
    std::optional<ip_address> address;
    std::string name; // as given; used if there is no address
};

/// The errors are those of async_resolve(). Asks the kernel for the index of a named interface.
[[nodiscard]] result<host_name> read_host(std::string_view text);

/// A port; empty if `text` is a name to look up.
[[nodiscard]] result<std::optional<std::uint16_t>> read_service(std::string_view text) noexcept;

} // namespace simplenet::v0::detail
