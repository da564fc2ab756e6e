#include "http/proxy/tunnel.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <utility>
#include <variant>

namespace simplenet::v0::http::detail {

namespace {

using clock = std::chrono::steady_clock;

class tunnel {
public:
    explicit tunnel(std::chrono::nanoseconds idle) noexcept
        : idle_{idle > std::chrono::nanoseconds::zero() ? idle : std::chrono::hours{24 * 365}} {}

    /// One direction, to its end.
    task<result<>> pass(any_stream& from, any_stream& to, received first) {
        const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
        for (received bytes = std::move(first);;) {
            if (!bytes.empty()) {
                const_buffer left{bytes.data(), bytes.size()};
                while (!left.empty()) {
                    auto writing = to.write_some(left);
                    const result<std::size_t> count =
                        co_await with_timeout(std::move(writing), idle_);
                    if (!count) co_return fail(count);
                    left = left.subspan(*count);
                    moved_at_ = clock::now();
                }
                bytes.release();
            }
            auto waiting = from.readable();
            const result<> ready = co_await with_deadline(std::move(waiting), moved_at_ + idle_);
            if (!ready) {
                const bool is_limit =
                    ready.error() == simplenet::errc::deadline_exceeded && !within.stopped();
                // The other direction may have moved.
                if (is_limit && clock::now() < moved_at_ + idle_) continue;
                co_return fail(ready);
            }
            result<received> more = from.try_receive();
            if (more) {
                bytes = *std::move(more);
                moved_at_ = clock::now();
            } else if (more.error() == simplenet::errc::end_of_stream) {
                moved_at_ = clock::now();
                co_return co_await to.shutdown_write();
            } else if (more.error() != std::errc::operation_would_block) {
                co_return fail(more);
            }
        }
    }

private:
    const std::chrono::nanoseconds idle_;
    clock::time_point moved_at_ = clock::now(); // a byte, in either direction
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
