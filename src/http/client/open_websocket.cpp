#include "http/client/open_websocket.hpp"

#include "http/codec/list.hpp"
#include "http/codec/websocket_handshake.hpp"
#include "http/random.hpp"
#include "http/websocket/websocket_access.hpp"

#include <simplenet/http/errc.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

namespace {

task<result<websocket>> refuse_websocket(std::error_code why) {
    co_return fail(why);
}

task<result<websocket>> shake_hands(std::shared_ptr<client_core> core, owned_request asked,
                                    std::string offered, websocket_options options) {
    std::array<std::byte, 16> random;
    fill_with_random(random);
    const websocket_key key = make_websocket_key(random);
    const std::string_view key_text{key.data(), key.size()};
    asked.fields.add("Connection", "Upgrade")
        .add("Upgrade", "websocket")
        .add("Sec-WebSocket-Key", key_text)
        .add("Sec-WebSocket-Version", "13");
    if (!offered.empty()) asked.fields.add("Sec-WebSocket-Protocol", offered);
    const auto until = after(std::chrono::steady_clock::now(), core->settings->options().total);
    auto answered = co_await exchange_once(*core, asked, until);
    if (!answered) co_return fail(answered);
    client_exchange& answer = **answered;
    handshake_fields told;
    for (const field each : answer.fields())
        told.add(each.name, each.value);
    std::vector<std::string_view> protocols;
    for_each_element(offered, [&](std::string_view each) {
        if (!each.empty()) protocols.push_back(each);
        return true;
    });
    if (!told.accepts(answer.status(), key_text, protocols)) {
        co_return fail(errc::websocket_protocol);
    }
    std::string protocol{told.protocol()};
    received ahead;
    any_stream over = answer.release(ahead);
    co_return websocket_access::make(std::move(over), websocket_role::client, options,
                                     std::move(ahead), std::move(protocol));
}

} // namespace

task<result<websocket>> open_websocket(const std::shared_ptr<client_core>& core,
                                       std::string_view to, const websocket_options& options) {
    auto origin = parse_websocket_url(to);
    if (!origin) return refuse_websocket(errc::bad_url);
    std::string offered;
    for (const std::string_view each : options.protocols) {
        if (!is_token(each)) {
            return refuse_websocket(std::make_error_code(std::errc::invalid_argument));
        }
        if (!offered.empty()) offered += ", ";
        offered += each;
    }
    owned_request asked;
    asked.method = "GET";
    asked.to = *std::move(origin);
    asked.upgrades = true;
    websocket_options kept = options;
    kept.origins = kept.protocols = {};
    return shake_hands(core, std::move(asked), std::move(offered), kept);
}

} // namespace simplenet::v0::http::detail
