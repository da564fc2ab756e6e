#include "http/websocket/route.hpp"

#include "http/server/exchange.hpp"
#include "http/websocket/accept.hpp"

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

    [[nodiscard]] now_or_task<result<>> report(request& asked, response&) override {
        return accept(asked);
    }

private:
    [[nodiscard]] task<result<>> accept(request& asked) {
        exchange& of = exchange::of(asked);
        auto accepted = co_await accept_websocket(of, options_);
        if (!accepted) co_return fail(accepted);
        if (handler_->wants_request) {
            co_return co_await talk(handler_, &asked, *std::move(accepted));
        }
        of.continue_with(talk(handler_, nullptr, *std::move(accepted)));
        co_return result<>{};
    }

    // The route may be replaced meanwhile, so this holds its handler.
    static task<result<>> talk(std::shared_ptr<websocket_handler> with, request* asked,
                               websocket peer) {
        std::exception_ptr thrown;
        result<> outcome;
        try {
            outcome = co_await with->talk(asked, peer);
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
