#include "http/client/send_limit.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <system_error>

namespace simplenet::v0::http::detail {

task<result<std::size_t>> send_limit::write(any_stream& to, std::span<const const_buffer> from) {
    using simplenet::detail::timed_queue;
    if (most_ <= most_.zero()) co_return co_await to.write_some(from);
    if (waited_ >= most_) { // and TLS had sealed something: has that left now?
        result<std::size_t> count = to.try_write_some(from);
        is_exceeded_ = !count && count.error() == std::errc::operation_would_block;
        if (is_exceeded_) count = fail(simplenet::errc::deadline_exceeded);
        if (count) waited_ = {};
        co_return count;
    }
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const auto begin = timed_queue::present();
    const result<std::size_t> count = co_await with_timeout(to.write_some(from), most_ - waited_);
    waited_ += timed_queue::present() - begin;
    // TLS counts what it has sealed, also if a stop or the limit came before that had left.
    if (count && !within.stopped() && waited_ < most_) waited_ = {};
    is_exceeded_ =
        !count && !within.stopped() && count.error() == simplenet::errc::deadline_exceeded;
    co_return count;
}

} // namespace simplenet::v0::http::detail
