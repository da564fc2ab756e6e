#pragma once
// lacks_descriptors(). Layer sys, private.

#include <simplenet/core/abi.hpp>

#include <system_error>

namespace simplenet::v0::detail::sys {

/// Whether a call failed because the process or the system has no descriptor left.
[[nodiscard]] inline bool lacks_descriptors(const std::error_code& why) noexcept {
    return why == std::errc::too_many_files_open || why == std::errc::too_many_files_open_in_system;
}

} // namespace simplenet::v0::detail::sys
