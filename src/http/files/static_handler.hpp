#pragma once
// make_static_handler: the handler behind router::files(). Layer http, private.

#include <simplenet/http/detail/route_handler.hpp>
#include <simplenet/http/static_options.hpp>

#include <memory>
#include <string_view>

namespace simplenet::v0::http::detail {

/// For a route that ends in `{...}`: the path beneath `directory`. Throws std::system_error if that
/// cannot be opened.
[[nodiscard]] std::shared_ptr<route_handler> make_static_handler(std::string_view directory,
                                                                 const static_options& options);

/// Redirects to the path with a slash behind it.
[[nodiscard]] std::shared_ptr<route_handler> make_slash_redirect();

} // namespace simplenet::v0::http::detail
