#include "http/websocket/connection.hpp"
#include "http/websocket/operations.hpp"
#include "http/websocket/websocket_access.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/http/websocket.hpp>

#include <utility>

namespace simplenet::v0::http {

namespace {

detail::websocket_connection& existing(detail::websocket_connection* connection) noexcept {
    SIMPLENET_EXPECTS(connection != nullptr, "a websocket was used that was moved from");
    return *connection;
}

} // namespace

websocket detail::websocket_access::make(any_stream over, websocket_role role,
                                         const websocket_options& options, received ahead,
                                         std::string protocol) {
    return websocket{new websocket_connection{std::move(over), role, options, std::move(ahead),
                                              std::move(protocol)}};
}

void detail::websocket_access::watch_server(websocket& peer,
                                            const simplenet::detail::scope& within) noexcept {
    websocket_connection& on = existing(peer.connection_);
    if (!simplenet::detail::wait_for_server_stop(within, on)) on.server_stops();
}

task<result<websocket::message>> websocket::read_message(std::size_t limit) {
    const detail::reading what = detail::reading::for_message;
    return detail::read_message(detail::websocket_ref{existing(connection_)}, limit, what);
}

task<result<websocket::message>> websocket::read_message() {
    return read_message(existing(connection_).message_limit);
}

task<result<>> websocket::write_message(std::string_view text) {
    return write_message(message::kind::text, text);
}

task<result<>> websocket::write_message(std::span<const std::byte> binary) {
    return write_message(message::kind::binary, binary);
}

task<result<>> websocket::write_message(enum message::kind kind, const_buffer data) {
    return detail::write_message(detail::websocket_ref{existing(connection_)}, kind, data);
}

task<result<>> websocket::ping(const_buffer payload) {
    return detail::ping(detail::websocket_ref{existing(connection_)}, payload);
}

task<result<>> websocket::close(std::uint16_t code, std::string_view reason) {
    return detail::close(detail::websocket_ref{existing(connection_)}, code, reason);
}

std::uint16_t websocket::close_code() const noexcept {
    return existing(connection_).close_code;
}

std::string_view websocket::close_reason() const noexcept {
    return existing(connection_).close_reason;
}

std::string_view websocket::protocol() const noexcept {
    return existing(connection_).protocol;
}

void websocket::drop() noexcept {
    if (connection_ == nullptr) return;
    connection_->close_stream();
    detail::websocket_ref::drop(connection_);
}

} // namespace simplenet::v0::http
