#include "net/connect_attempt.hpp"

#include "io/connect_operation.hpp"
#include "io/socket_record.hpp"
#include "ip/native.hpp"
#include "socket/setup.hpp"
#include "sys/calls.hpp"

#include <simplenet/coro/detail/refusal.hpp>
#include <simplenet/net/detail/local_byte_stream.hpp>
#include <simplenet/socket/detail/option_calls.hpp>
#include <simplenet/socket/detail/socket_access.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace simplenet::v0 {
namespace detail {

namespace {

/// A TCP socket that is becoming a tcp_stream.
class connecting_object final : public async_socket {
public:
    explicit connecting_object(unique_fd socket)
        : async_socket{std::move(socket)} {}

    using async_socket::give_away;

    /// @pre `to` outlives the await.
    [[nodiscard]] connect_operation connect(const native_address& to) noexcept {
        return {record(), to};
    }
};

result<unique_fd> open_for(const endpoint& to, const connect_options& options) {
    auto socket = open_tcp(to, sys::mode::nonblocking);
    if (!socket) return socket;
    if (options.from) {
        native_address from = to_native(*options.from);
        if (const int outcome = sys::bind(socket->get(), from.data(), from.size); outcome < 0) {
            return fail(sys::error_from(outcome));
        }
    }
    if (options.no_delay) {
        if (auto set = options::set_no_delay(socket->get(), true); !set) return fail(set);
    }
    return socket;
}

task<result<tcp_stream>> connect_once(endpoint to, connect_options options) {
    auto socket = open_for(to, options);
    if (!socket) co_return fail(socket);
    connecting_object connecting{*std::move(socket)};
    native_address address = to_native(to);
    if (auto connected = co_await connecting.connect(address); !connected)
        co_return fail(connected);
    co_return stream_access::make<tcp_stream>(connecting.give_away());
}

task<result<tcp_stream>> limit(task<result<tcp_stream>> connecting, std::chrono::nanoseconds time) {
    co_return co_await with_timeout(std::move(connecting), time);
}

nonblocking::local_stream as_local(unique_fd socket) {
    return socket_access::make<nonblocking::local_stream>(std::move(socket));
}

/// Calls `connect_once` with `to` until the listener's queue has room.
template <class Connect>
auto connect_to_listener(local_endpoint to, Connect connect_once)
    -> task<decltype(connect_once(to))> {
    using namespace std::chrono_literals;
    if (auto refused = co_await refusal{}; !refused) co_return fail(refused);
    std::chrono::milliseconds pause = 1ms;
    for (;;) {
        auto made = connect_once(to);
        if (made || made.error() != std::errc::operation_would_block) co_return made;
        if (auto slept = co_await async_sleep(pause); !slept) co_return fail(slept);
        pause = std::min(2 * pause, 50ms);
    }
}

} // namespace

task<result<local_byte_stream>> connect_for_bytes(local_endpoint to) {
    auto made = co_await connect_to_listener(to, connect_local_for_bytes);
    if (!made) co_return fail(made);
    co_return local_byte_stream{as_local(std::move(made->socket)), made->bytes_alone};
}

attempt_entry::attempt_entry(connect_report* report, const endpoint& to, const call_time& since)
    : report_{report}
    , since_{since} {
    if (report_ == nullptr) return;
    index_ = report_->attempts.size();
    report_->attempts.push_back(
        {to, make_error_code(std::errc::operation_canceled), since_.elapsed(), {}});
}

attempt_entry::~attempt_entry() {
    if (report_ != nullptr) report_->attempts[index_].ended = since_.elapsed();
}

void attempt_entry::note(std::error_code error) noexcept {
    if (report_ != nullptr) report_->attempts[index_].error = error;
}

task<result<tcp_stream>> attempt_connect(endpoint to, connect_options options, call_time since) {
    attempt_entry entry{options.report, to, since};
    auto stream = co_await connect_once(to, options);
    entry.note(stream ? std::error_code{} : stream.error());
    co_return stream;
}

task<result<tcp_stream>> connect_and_report(endpoint to, connect_options options) {
    *options.report = {};
    co_return co_await attempt_connect(to, options, call_time{});
}

task<result<tcp_stream>> limited_by(connect_options options, task<result<tcp_stream>> connecting) {
    if (!options.timeout) return connecting;
    return limit(std::move(connecting), *options.timeout);
}

} // namespace detail

inline namespace runtime {

task<result<tcp_stream>> async_connect(endpoint to, connect_options options) {
    auto connecting = options.report == nullptr ? detail::connect_once(to, options)
                                                : detail::connect_and_report(to, options);
    return detail::limited_by(options, std::move(connecting));
}

task<result<local_stream>> async_connect(local_endpoint to) {
    constexpr auto connect_once = [](const local_endpoint& peer) {
        return detail::connect_local(peer, detail::sys::mode::nonblocking, std::nullopt);
    };
    auto socket = co_await detail::connect_to_listener(to, connect_once);
    if (!socket) co_return fail(socket);
    co_return local_stream{detail::as_local(*std::move(socket))};
}

} // namespace runtime
} // namespace simplenet::v0
