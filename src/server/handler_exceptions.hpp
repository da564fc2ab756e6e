#pragma once
// handler_exceptions: where the exceptions of handlers go. Layer server, private; callbacks use it,
// too.

#include <exception>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

struct server_settings;

/// Reports an exception of a handler, see server_options::on_handler_exception. On its loop.
void report_handler_exception(const server_settings& settings,
                              std::exception_ptr exception) noexcept;
/// The same for a handler without such a hook.
void report_handler_exception(std::exception_ptr exception) noexcept;

} // namespace simplenet::v0::detail
