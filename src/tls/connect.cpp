#include <simplenet/tls/connect.hpp>

#include "tls/context_core.hpp"

#include <simplenet/time/deadline.hpp>

#include <string>
#include <utility>

namespace simplenet::v0::tls {
namespace detail {

// Not in an anonymous namespace, see src/net/sockets.cpp.
task<result<stream<tcp_stream>>> connect_and_shake_hands(std::string host, std::uint16_t port,
                                                         context with, connect_options options,
                                                         std::string* detail) {
    if (detail != nullptr) detail->clear();
    if (with.core().plays() != side::client) {
        if (detail != nullptr) *detail = "async_connect() with a server's context";
        co_return fail(errc::bad_configuration);
    }
    auto connected = co_await simplenet::async_connect(host, port, options);
    if (!connected) co_return fail(connected);
    stream<tcp_stream> made{*std::move(connected), with, {.server_name = host}};
    const auto shaken = co_await made.handshake();
    if (!shaken) {
        if (detail != nullptr) *detail = made.error_detail();
        co_return fail(shaken);
    }
    co_return made;
}

task<result<stream<tcp_stream>>> connect_in_time(std::string host, std::uint16_t port, context with,
                                                 connect_options options, std::string* detail) {
    const std::chrono::nanoseconds limit = *options.timeout;
    options.timeout.reset();
    co_return co_await with_timeout(
        connect_and_shake_hands(std::move(host), port, std::move(with), options, detail), limit);
}

} // namespace detail

task<result<stream<tcp_stream>>> async_connect(std::string_view host, std::uint16_t port,
                                               const context& with, connect_options options,
                                               std::string* detail) {
    if (options.timeout) {
        return detail::connect_in_time(std::string{host}, port, with, options, detail);
    }
    return detail::connect_and_shake_hands(std::string{host}, port, with, options, detail);
}

} // namespace simplenet::v0::tls
