#include "http/client/send_limit.hpp"

#include "http/acknowledged_bytes.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>
#if SIMPLENET_HAS_TLS
#include <simplenet/tls/stream.hpp>
#endif

#include <algorithm>
#include <system_error>

namespace simplenet::v0::http::detail {

namespace {

using simplenet::detail::timed_queue;

/// How often the kernel is asked what the peer has taken.
constexpr std::chrono::nanoseconds longest_step = std::chrono::seconds{1};

/// -1: there is none that is known.
int socket_of(any_stream& of) noexcept {
    if (const auto* const tcp = of.target<tcp_stream>()) return tcp->native_handle();
    if (const auto* const local = of.target<local_stream>()) return local->native_handle();
#if SIMPLENET_HAS_TLS
    if (const auto* const secure = of.target<tls::stream<tcp_stream>>()) {
        return secure->transport().native_handle();
    }
#endif
    return -1;
}

} // namespace

task<result<std::size_t>> send_limit::write(any_stream& to, std::span<const const_buffer> from) {
    if (!socket_) socket_ = socket_of(to);
    const bool is_limited = most_ > most_.zero();
    return is_limited && *socket_ >= 0 ? write_on(*socket_, to, from) : write_elsewhere(to, from);
}

task<result<std::size_t>> send_limit::write_elsewhere(any_stream& to,
                                                      std::span<const const_buffer> from) {
    if (most_ <= most_.zero()) co_return co_await to.write_some(from);
    if (waited_ >= most_) { // and TLS had sealed something: has that left now?
        const result<std::size_t> count = to.try_write_some(from);
        if (count) waited_ = {};
        if (!count && count.error() == std::errc::operation_would_block) co_return exceed();
        co_return count;
    }
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    const auto begin = timed_queue::present();
    const result<std::size_t> count = co_await with_timeout(to.write_some(from), most_ - waited_);
    waited_ += timed_queue::present() - begin;
    // TLS counts what it has sealed, also if a stop or the limit came before that had left.
    if (count && !within.stopped() && waited_ < most_) waited_ = {};
    if (!count && !within.stopped() && count.error() == simplenet::errc::deadline_exceeded) {
        co_return exceed();
    }
    co_return count;
}

task<result<std::size_t>> send_limit::write_on(int socket, any_stream& to,
                                               std::span<const const_buffer> from) {
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    if (!acknowledged_ || waited_ >= most_) look(socket); // it may have been long ago
    while (waited_ < most_) {
        const auto begin = timed_queue::present();
        const auto step = std::min(longest_step, most_ - waited_);
        const result<std::size_t> count = co_await with_timeout(to.write_some(from), step);
        waited_ += timed_queue::present() - begin;
        sent_ += static_cast<std::int64_t>(count.value_or(0));
        if (waited_ >= std::min(longest_step, most_)) look(socket);
        const bool is_step =
            !count && !within.stopped() && count.error() == simplenet::errc::deadline_exceeded;
        if (!is_step) co_return count;
    }
    co_return exceed();
}

void send_limit::look(int socket) noexcept {
    const std::int64_t now = acknowledged_bytes(socket, sent_);
    if (acknowledged_ && now > *acknowledged_) waited_ = {};
    acknowledged_ = now;
}

std::unexpected<std::error_code> send_limit::exceed() noexcept {
    is_exceeded_ = true;
    return fail(simplenet::errc::deadline_exceeded);
}

} // namespace simplenet::v0::http::detail
