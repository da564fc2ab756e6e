#pragma once
// make_uring_backend, probe_uring: the only functions of the io_uring backend that other layers
// see. Layer io_uring, private.

#include "io/backend.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/io/loop_options.hpp>

#include <memory>

namespace simplenet::v0::detail {

[[nodiscard]] result<std::unique_ptr<backend_driver>>
make_uring_backend(io_queue& owner, const loop_options& options);

/// Whether io_uring works here, tried by a real round trip; if not, the reason. Tried once per
/// process.
[[nodiscard]] result<> probe_uring() noexcept;

} // namespace simplenet::v0::detail
