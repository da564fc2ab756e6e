#include "http/server/last_bytes.hpp"

#include "http/acknowledged_bytes.hpp"
#include "http/server/uptake.hpp"
#include "http/unacknowledged_bytes.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/server/detail/spare_wait.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <linux/sockios.h>
#include <linux/tcp.h> // as acknowledged_bytes.cpp: that of the C library cannot be beside it
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace simplenet::v0::http::detail {

namespace {

/// Its peer has reset it, for example. The kernel counts what was not acknowledged then.
bool is_over(int socket) noexcept {
    constexpr int closed = 7; // TCP_CLOSE of <netinet/tcp.h>
    ::tcp_info info{};
    ::socklen_t size = sizeof info.tcpi_state;
    return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
           info.tcpi_state == closed;
}

} // namespace

bool has_last_bytes(int socket) noexcept {
    int unsent = 0;
    return ::ioctl(socket, SIOCOUTQNSD, &unsent) == 0 && unsent > 0;
}

task<last_bytes> wait_for_last_bytes(int socket, limits with) {
    constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds{250};
    const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
    simplenet::detail::spare_wait waiting{within};
    uptake of_client;
    std::chrono::nanoseconds pause = std::chrono::milliseconds{1};
    while (unacknowledged_bytes(socket) > 0) {
        if (is_over(socket)) co_return last_bytes::unknown;
        of_client.saw(acknowledged_bytes(socket));
        if (of_client.is_too_slow(with)) co_return last_bytes::too_slow;
        auto sleeping = waiting.of(async_sleep(pause));
        const result<> slept = co_await std::move(sleeping);
        if (!slept) co_return waiting.must_end() ? last_bytes::left : last_bytes::unknown;
        of_client.waited(pause);
        pause = std::min(2 * pause, longest_pause);
    }
    co_return last_bytes::taken;
}

void leave_last_bytes(int socket, const limits& with) noexcept {
    if (with.send_idle <= with.send_idle.zero() || !has_last_bytes(socket)) return;
    using milliseconds = std::chrono::duration<int, std::milli>;
    constexpr milliseconds most{std::numeric_limits<int>::max()};
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(with.send_idle);
    const int time = rounded < most ? static_cast<int>(rounded.count()) : most.count();
    static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &time, sizeof time));
}

} // namespace simplenet::v0::http::detail
