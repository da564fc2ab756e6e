#include "http/proxy/tunnel.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

namespace simplenet::v0::http::detail {

namespace {

using clock = std::chrono::steady_clock;
using simplenet::detail::timed_queue; // its time is that of the limits

class tunnel {
public:
    explicit tunnel(std::chrono::nanoseconds idle) noexcept
        : idle_{idle > idle.zero() ? std::min<std::chrono::nanoseconds>(idle, longest) : longest} {}

    /// One direction, to its end.
    task<result<>> pass(any_stream& from, any_stream& to, received first) {
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        for (received bytes = std::move(first);;) {
            if (!bytes.empty()) {
                const_buffer left{bytes.data(), bytes.size()};
                while (!left.empty()) {
                    auto writing = to.write_some(left);
                    const result<std::size_t> count =
                        co_await with_deadline(std::move(writing), moved_at_ + idle_);
                    if (count) {
                        left = left.subspan(*count);
                        // TLS counts what it has sealed, also when the time has ended.
                        if (timed_queue::present() < moved_at_ + idle_) note_moved();
                    } else if (within.stopped() || !other_has_moved(count.error())) {
                        co_return fail(count);
                    }
                }
                bytes.release();
            }
            auto waiting = from.readable();
            const result<> ready = co_await with_deadline(std::move(waiting), moved_at_ + idle_);
            if (!ready) {
                if (!within.stopped() && other_has_moved(ready.error())) continue;
                co_return fail(ready);
            }
            result<received> more = from.try_receive();
            if (more) {
                bytes = *std::move(more);
                note_moved();
            } else if (more.error() == simplenet::errc::end_of_stream) {
                note_moved();
                co_return co_await end(to, within);
            } else if (more.error() != std::errc::operation_would_block) {
                co_return fail(more);
            }
        }
    }

private:
    static constexpr std::chrono::hours longest{24 * 365};

    /// With TLS the end may have to wait until earlier bytes have left.
    task<result<>> end(any_stream& to, const simplenet::detail::scope& within) {
        for (;;) {
            auto ending = to.shutdown_write();
            const result<> ended = co_await with_deadline(std::move(ending), moved_at_ + idle_);
            if (ended || within.stopped() || !other_has_moved(ended.error())) co_return ended;
        }
    }
    void note_moved() noexcept { moved_at_ = timed_queue::present(); }

    /// Whether `why` is the end of this direction's time, but not of the other's.
    [[nodiscard]] bool other_has_moved(const std::error_code& why) const noexcept {
        return why == simplenet::errc::deadline_exceeded &&
               timed_queue::present() < moved_at_ + idle_;
    }

    const std::chrono::nanoseconds idle_;
    clock::time_point moved_at_ = timed_queue::present(); // a byte, in either direction
};

task<result<>> pass_both_ways(any_stream& client, any_stream& backend, received ahead,
                              std::chrono::nanoseconds idle) {
    tunnel through{idle};
    task<result<>> down = through.pass(backend, client, std::move(ahead));
    task<result<>> up = through.pass(client, backend, {});
    const auto ended = co_await gather(std::move(down), std::move(up));
    if (!ended) co_return fail(ended.error());
    co_return result<>{};
}

task<result<>> until_server_stops() {
    co_return co_await server_stop();
}

} // namespace

task<result<>> run_tunnel(any_stream client, any_stream backend, received ahead,
                          std::chrono::nanoseconds idle) {
    task<result<>> passing = pass_both_ways(client, backend, std::move(ahead), idle);
    task<result<>> stopping = until_server_stops();
    auto first = co_await when_any(std::move(passing), std::move(stopping));
    const std::optional<result<>>& passed = std::get<0>(first.values);
    if (first.index == 0 && passed) co_return *passed;
    co_return result<>{};
}

} // namespace simplenet::v0::http::detail
