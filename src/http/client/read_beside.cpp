#include "http/client/read_beside.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>

#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// Tells `error`, unless it comes of a stop.
task<result<std::size_t>> read_and_tell(any_stream& from, mutable_buffer into,
                                        std::error_code& error) {
    const result<std::size_t> count = co_await from.read_some(into);
    if (!count && count.error() != std::errc::operation_canceled &&
        count.error() != simplenet::errc::deadline_exceeded) {
        error = count.error();
    }
    co_return count;
}

} // namespace

task<result<std::size_t>> read_beside(task<result<>> sending, any_stream& from,
                                      mutable_buffer into) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    std::error_code error;
    task<result<std::size_t>> reading = read_and_tell(from, into, error);
    auto ended = co_await when_any(std::move(sending), std::move(reading));
    const std::optional<result<std::size_t>>& read = std::get<1>(ended.values);
    if (read) co_return *read;
    // The combinator drops an error that came second, and the kernel tells it once (socket(7),
    // SO_ERROR).
    if (error) co_return fail(error);
    if (within.stopped()) co_return fail(simplenet::detail::error_of(within.reason));
    co_return std::size_t{0};
}

} // namespace simplenet::v0::http::detail
