#include "http/server/last_bytes.hpp"

#include "http/acknowledged_bytes.hpp"

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

using simplenet::detail::timed_queue;

namespace {

constexpr std::chrono::nanoseconds first_pause = std::chrono::milliseconds{1};

/// Its peer has reset it, for example. The kernel counts what was not acknowledged then.
bool has_connection_ended(int socket) noexcept {
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

void limit_last_bytes(int socket, const limits& with) noexcept {
    if (with.send_idle <= with.send_idle.zero() || !has_last_bytes(socket)) return;
    using milliseconds = std::chrono::duration<int, std::milli>;
    constexpr milliseconds most{std::numeric_limits<int>::max()};
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(with.send_idle);
    const int time = rounded < most ? static_cast<int>(rounded.count()) : most.count();
    static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &time, sizeof time));
}

// --- last_wait -----------------------------------------------------------------------------------

last_wait::last_wait(const simplenet::detail::scope& within, int socket, const limits& with,
                     nanoseconds silence, const uptake& so_far) noexcept
    : socket_{socket}
    , limits_{with}
    , silence_{silence}
    , uptake_{so_far}
    , begin_{timed_queue::present()}
    , heard_at_{begin_}
    , taken_at_{begin_}
    , pause_{first_pause} {
    if (simplenet::detail::wait_for_server_stop(within, *this)) {
        arm(first_pause);
    } else {
        server_stops();
    }
}

bool last_wait::is_client_behind() const noexcept {
    return !must_end() && simplenet::detail::has_more_to_take(socket_) &&
           !has_connection_ended(socket_);
}

void last_wait::expired() noexcept {
    const nanoseconds left = look();
    if (left <= nanoseconds::zero() && end(simplenet::detail::stop_reason::deadline)) return;
    arm(std::max(left, first_pause));
}

void last_wait::server_stops() noexcept {
    // Whoever reads nothing must not hold up the end of the server.
    limit_from(timed_queue::present());
    arm(first_pause);
}

void last_wait::limit_from(clock::time_point now) noexcept {
    constexpr auto never = clock::time_point::max();
    const nanoseconds limit = limits_.linger_idle;
    no_later_ = limit > nanoseconds::zero() && limit < never - now ? now + limit : never;
}

void last_wait::arm(nanoseconds until_look) noexcept {
    cancel();
    timed_queue::of_this_thread()->timers.insert_after(*this, until_look);
}

last_wait::nanoseconds last_wait::look() noexcept {
    constexpr nanoseconds longest_pause = std::chrono::seconds{1};
    const auto now = timed_queue::present();
    // A disk that holds up the loop is not the client's fault.
    const auto waited = std::min<nanoseconds>(now - std::exchange(begin_, now), 2 * pause_);
    if (!is_taken_ && is_client_behind()) {
        uptake_.waited(waited);
        uptake_.saw(acknowledged_bytes(socket_));
        is_too_slow_ = uptake_.is_too_slow(limits_);
        if (is_too_slow_) return nanoseconds::zero();
        if (no_later_ && uptake_.has_just_taken()) limit_from(now);
        pause_ = std::min({2 * pause_, longest_pause, uptake_.until_look(limits_)});
        return no_later_ ? std::min<nanoseconds>(pause_, *no_later_ - now) : pause_;
    }
    if (!std::exchange(is_taken_, true)) taken_at_ = now;
    const bool has_limit = limits_.linger > nanoseconds::zero();
    const nanoseconds most = has_limit ? limits_.linger : nanoseconds::max();
    return std::min<nanoseconds>(most - (now - taken_at_),
                                 silence_ - (now - std::max(taken_at_, heard_at_)));
}

} // namespace simplenet::v0::http::detail
