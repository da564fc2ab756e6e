#include "http/client/send_limit.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

namespace simplenet::v0::http::detail {

task<result<std::size_t>> send_limit::write(any_stream& to, std::span<const const_buffer> from) {
    using simplenet::detail::timed_queue;
    if (most_ == most_.zero()) co_return co_await to.write_some(from);
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const auto begin = timed_queue::present();
    const result<std::size_t> count = co_await with_timeout(to.write_some(from), most_ - waited_);
    if (count) {
        waited_ = {};
        co_return count;
    }
    waited_ += timed_queue::present() - begin;
    is_exceeded_ = !within.stopped() && count.error() == simplenet::errc::deadline_exceeded;
    co_return count;
}

} // namespace simplenet::v0::http::detail
