#pragma once
// Becoming another user once what only root may do is done.

#include "httpd/config/configuration.hpp"

#include <simplenet/core/error.hpp>

namespace httpd {

/// Raises the number of descriptors that the process may have to the most it may ask for.
void raise_descriptor_limit() noexcept;

/// Becomes `user` with the groups of that user, for good. CAP_NET_BIND_SERVICE stays, so that a
/// reload can open listeners below port 1024; everything else of root is gone, and cannot come back
/// by executing a program (PR_SET_NO_NEW_PRIVS, prctl(2)).
///
/// @pre There are no other threads: each has capabilities of its own.
///
/// @par Errors
/// - `std::errc::operation_not_permitted`: the process is neither root nor this user.
/// - Those of initgroups(3), setgid(2), setuid(2), capset(2).
[[nodiscard]] simplenet::result<> become(const run_as& user);

} // namespace httpd
