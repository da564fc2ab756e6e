#pragma once
// client_core: the settings and the connections of a client. Layer http, private.

#include "http/client/client_exchange.hpp"
#include "http/client/client_settings.hpp"
#include "http/client/owned_request.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/client_response.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/connection_pool.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace simplenet::v0::http::detail {

/// Shared by a client and its calls.
class client_core {
public:
    explicit client_core(const client_options& options);

    const std::shared_ptr<client_settings> settings;
    /// By origin. None: the client is gone.
    std::optional<connection_pool<any_stream>> pool;
};

struct client_access {
    [[nodiscard]] static client_response make(std::unique_ptr<client_exchange> exchange) noexcept {
        return client_response{std::move(exchange)};
    }
};

/// Sends a request, again if its connection was over, and reads the head of its answer.
[[nodiscard]] task<result<std::unique_ptr<client_exchange>>>
exchange_once(client_core& core, const owned_request& asked,
              std::chrono::steady_clock::time_point until);

} // namespace simplenet::v0::http::detail
