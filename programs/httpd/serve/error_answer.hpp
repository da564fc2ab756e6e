#pragma once
// The page of an error for which a site has none.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/response.hpp>

namespace httpd {

/// Answers with `status`, and a page that says what it means.
[[nodiscard]] simplenet::task<simplenet::result<>> send_error(unsigned status,
                                                              simplenet::http::response& answer);

} // namespace httpd
