#include "http/websocket/accept.hpp"

#include "http/codec/list.hpp"
#include "http/codec/websocket_handshake.hpp"
#include "http/server/exchange.hpp"
#include "http/websocket/websocket_access.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/http/errc.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::http {

namespace detail {

// Not in an anonymous namespace, see src/net/sockets.cpp.
/// What speaks against a handshake: the status of the answer, and a field that goes with it.
struct objection {
    unsigned status = 0; // 0: nothing does
    std::string_view name = {};
    std::string_view value = {};
};

namespace {

objection objection_to(const request& asked, const handshake_fields& fields,
                       const websocket_options& options) {
    switch (fields.of_request(asked.method(), asked.version())) {
    case handshake_fields::verdict::accepted:
        break;
    case handshake_fields::verdict::not_asked:
        return {426, "Upgrade", "websocket"};
    case handshake_fields::verdict::wrong_version:
        return {426, "Sec-WebSocket-Version", "13"};
    case handshake_fields::verdict::bad:
        return {400};
    }
    if (asked.content_length() != 0U) return {400}; // it would be taken for frames
    const auto origins = asked.fields().count("Origin");
    const auto origin = asked.fields().find("Origin");
    if (origins > 1) return {403};
    if (origin && !is_allowed_origin(*origin, asked.host(), options.origins)) return {403};
    return {};
}

std::string_view chosen_protocol(const request& asked, const websocket_options& options) {
    for (const field each : asked.fields()) {
        if (!iequals(each.name, "Sec-WebSocket-Protocol")) continue;
        const std::string_view chosen = choose_protocol(each.value, options.protocols);
        if (!chosen.empty()) return chosen;
    }
    return {};
}

} // namespace

task<result<websocket>> accept_websocket(exchange& of, websocket_options options) {
    if (of.head_sent()) co_return fail(std::errc::operation_not_permitted);
    handshake_fields fields;
    for (const field each : of.asked().fields())
        fields.add(each.name, each.value);
    const objection against = objection_to(of.asked(), fields, options);
    if (against.status != 0) {
        of.forget_answer();
        if (!against.name.empty()) of.set_field(against.name, against.value, true);
        if (against.name == "Upgrade") of.set_field("Connection", "upgrade", true);
        static_cast<void>(co_await of.answer_with(against.status));
        of.excuse(make_error_code(errc::websocket_protocol));
        co_return fail(errc::websocket_protocol);
    }
    const websocket_accept accept = accept_websocket_key(fields.key());
    of.set_field("Sec-WebSocket-Accept", {accept.data(), accept.size()}, true);
    std::string protocol{chosen_protocol(of.asked(), options)};
    if (!protocol.empty()) of.set_field("Sec-WebSocket-Protocol", protocol, true);
    auto stream = co_await of.upgrade("websocket");
    if (!stream) co_return fail(stream);
    websocket peer = websocket_access::make(*std::move(stream), websocket_role::server, options, {},
                                            std::move(protocol));
    if (options.close_at_shutdown) {
        websocket_access::watch_server(peer, co_await simplenet::detail::own_scope{});
    }
    co_return peer;
}

} // namespace detail

task<result<websocket>> response::accept_websocket(websocket_options options) {
    return detail::accept_websocket(*exchange_, options);
}

} // namespace simplenet::v0::http
