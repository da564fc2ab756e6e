#pragma once
// make_epoll_backend: the only function of the epoll backend that other layers see. Layer epoll,
// private.

#include "io/backend.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/io/loop_options.hpp>

#include <memory>

namespace simplenet::v0::detail {

/// Also creates the simulated backend, if `options` ask for it.
[[nodiscard]] result<std::unique_ptr<backend_driver>>
make_epoll_backend(io_queue& owner, const loop_options& options);

} // namespace simplenet::v0::detail
