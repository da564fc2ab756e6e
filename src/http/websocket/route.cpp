#include "http/websocket/route.hpp"

#include "http/codec/list.hpp"
#include "http/codec/websocket_handshake.hpp"
#include "http/server/exchange.hpp"
#include "http/websocket/websocket_access.hpp"

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

namespace {

/// Owns what the views of websocket_options refer to.
class owned_texts {
public:
    explicit owned_texts(std::span<const std::string_view> from)
        : texts_{from.begin(), from.end()}
        , views_{texts_.begin(), texts_.end()} {}
    owned_texts(const owned_texts&) = delete;
    owned_texts& operator=(const owned_texts&) = delete;
    ~owned_texts() = default;

    [[nodiscard]] std::span<const std::string_view> views() const noexcept { return views_; }

private:
    const std::vector<std::string> texts_;
    const std::vector<std::string_view> views_;
};

class websocket_route final : public route_handler {
public:
    websocket_route(std::shared_ptr<websocket_handler> handler, const websocket_options& options)
        : route_handler{true}
        , handler_{std::move(handler)}
        , origins_{options.origins}
        , protocols_{options.protocols}
        , options_{options} {
        options_.origins = origins_.views();
        options_.protocols = protocols_.views();
    }

    [[nodiscard]] task<> serve(request&, response&) override { std::unreachable(); }

    [[nodiscard]] task<result<>> report(request& asked, response& answer) override {
        handshake_fields fields;
        for (const field each : asked.fields())
            fields.add(each.name, each.value);
        switch (fields.of_request(asked.method(), asked.version())) {
        case handshake_fields::verdict::accepted:
            break;
        case handshake_fields::verdict::not_asked:
            answer.set("Upgrade", "websocket").set("Connection", "upgrade");
            return exchange::of(asked).answer_with(426);
        case handshake_fields::verdict::wrong_version:
            answer.set("Sec-WebSocket-Version", "13");
            return exchange::of(asked).answer_with(426);
        case handshake_fields::verdict::bad:
            return exchange::of(asked).answer_with(400);
        }
        const auto origins = asked.fields().count("Origin");
        const auto origin = asked.fields().find("Origin");
        if (origins > 1 ||
            (origin && !is_allowed_origin(*origin, asked.host(), options_.origins))) {
            return exchange::of(asked).answer_with(403);
        }
        return talk(asked, answer, fields.key());
    }

private:
    task<result<>> talk(request& asked, response& answer, std::string_view key) {
        std::string protocol;
        for (const field each : asked.fields()) {
            if (!protocol.empty() || !iequals(each.name, "Sec-WebSocket-Protocol")) continue;
            protocol = choose_protocol(each.value, options_.protocols);
        }
        const websocket_accept accept = accept_websocket_key(key);
        answer.set("Sec-WebSocket-Accept", {accept.data(), accept.size()});
        if (!protocol.empty()) answer.set("Sec-WebSocket-Protocol", protocol);
        auto stream = co_await answer.upgrade("websocket");
        if (!stream) co_return fail(stream);
        websocket peer = websocket_access::make(*std::move(stream), websocket_role::server,
                                                options_, {}, std::move(protocol));
        std::exception_ptr thrown;
        result<> outcome;
        try {
            outcome = co_await handler_->talk(peer);
        } catch (...) {
            thrown = std::current_exception();
        }
        // What ends the connection is no failure of the handler.
        const bool failed = thrown || !outcome;
        static_cast<void>(co_await peer.close(failed ? 1011 : 1000));
        if (thrown) std::rethrow_exception(std::move(thrown));
        co_return outcome;
    }

    const std::shared_ptr<websocket_handler> handler_;
    const owned_texts origins_;
    const owned_texts protocols_;
    websocket_options options_;
};

} // namespace

std::shared_ptr<route_handler> make_websocket_route(std::shared_ptr<websocket_handler> handler,
                                                    const websocket_options& options) {
    return std::make_shared<websocket_route>(std::move(handler), options);
}

} // namespace simplenet::v0::http::detail
