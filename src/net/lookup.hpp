#pragma once
// How both families of a name are asked for and put together. Layer net, private.

#include "net/name_resolver.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <memory>
#include <vector>

namespace simplenet::v0::detail {

using lookup_result = result<std::shared_ptr<const sys::name_answer>>;

/// IPv6, then IPv4; a family without a route last. One that failed does not matter if the other
/// has something.
[[nodiscard]] result<std::vector<endpoint>> merge(const lookup_result& v6, const lookup_result& v4);

/// Why a name has no address of either family. An answer that may be another one later outweighs
/// one that is final, since the name may exist.
[[nodiscard]] std::error_code merge_errors(std::error_code v6, std::error_code v4) noexcept;

} // namespace simplenet::v0::detail
