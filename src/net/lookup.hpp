#pragma once
// Looks up both families of a name and merges the answers. Layer net, private.

#include "net/name_resolver.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <memory>
#include <vector>

namespace simplenet::v0::detail {

using lookup_result = result<std::shared_ptr<const sys::name_answer>>;

/// IPv6, then IPv4; a family without a route last. A failed family does not matter if the other has
/// addresses.
[[nodiscard]] result<std::vector<endpoint>> merge(const lookup_result& v6, const lookup_result& v4);

/// Why a name has no address of either family. A temporary error outweighs a final one, because the
/// name may exist.
[[nodiscard]] std::error_code merge_errors(std::error_code v6, std::error_code v4) noexcept;

} // namespace simplenet::v0::detail
