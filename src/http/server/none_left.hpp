#pragma once
// none_left(): the end of an attempt to answer. Layer http, private.

#include <simplenet/core/error.hpp>
#include <simplenet/http/now_or_task.hpp>

namespace simplenet::v0::http::detail {

/// 0 when `answer` has been taken, or its error. For functions that are no coroutines.
[[nodiscard]] now_or_task<result<unsigned>> none_left(now_or_task<result<>> answer);

} // namespace simplenet::v0::http::detail
