#pragma once
// make_backend: the only place that knows both backends. Layer runtime, private.

#include <simplenet/core/error.hpp>

#include <memory>

namespace simplenet::v0 {
inline namespace runtime {
struct loop_options;
} // namespace runtime

namespace detail {

class backend_driver;
class io_queue;

/// The backend that `options`, the environment and this process allow, in this order.
[[nodiscard]] result<std::unique_ptr<backend_driver>> make_backend(io_queue& owner,
                                                                   const loop_options& options);

} // namespace detail
} // namespace simplenet::v0
