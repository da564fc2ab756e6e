#pragma once
// make_uring_backend, probe_uring: all of the backend over io_uring that others see. Layer
// io_uring, private.

#include "io/backend.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/io/loop_options.hpp>

#include <memory>

namespace simplenet::v0::detail {

[[nodiscard]] result<std::unique_ptr<backend_driver>>
make_uring_backend(io_queue& owner, const loop_options& options);

/// Whether io_uring works here, by a real round trip; the reason if not. Found out once per
/// process.
[[nodiscard]] result<> probe_uring() noexcept;

} // namespace simplenet::v0::detail
