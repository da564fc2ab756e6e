#pragma once
// proxy_core: what the requests of a proxy_handler share. Layer http, private.

#include "http/client/client_settings.hpp"
#include "http/gateway/backend_connections.hpp"
#include "http/gateway/backend_set.hpp"
#include "http/gateway/once_in_a_while.hpp"
#include "http/gateway/shared_room.hpp"
#include "http/proxy/request_head.hpp"

#include <simplenet/http/proxy_options.hpp>
#include <simplenet/ip/address_set.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace simplenet::v0::http::detail {

class exchange;

/// The options with texts of their own, and the backends. Shared by the loops.
class proxy_core {
public:
    /// As the constructor of proxy_handler.
    explicit proxy_core(const proxy_options& options);

    [[nodiscard]] const proxy_options& options() const noexcept { return options_; }
    [[nodiscard]] const head_rules& rules() const noexcept { return rules_; }
    [[nodiscard]] const address_set& trusted() const noexcept { return trusted_; }
    [[nodiscard]] std::string_view directory() const noexcept { return directory_; }
    [[nodiscard]] const std::shared_ptr<const client_settings>& exchanges() const noexcept {
        return exchanges_;
    }
    [[nodiscard]] const std::shared_ptr<const backend_set>& backends() const noexcept {
        return backends_;
    }
    /// For answers that are read ahead.
    [[nodiscard]] const answer_room& room() const noexcept { return room_; }
    void report(gateway_event kind, std::string_view backend, std::string_view text,
                std::error_code error = {}) const;
    /// Answers could not be stored.
    void report_disk(std::error_code why) const;

private:
    proxy_options options_; // without its views
    head_rules rules_;
    const address_set trusted_;
    const std::string directory_;
    const std::shared_ptr<const client_settings> exchanges_;
    const std::shared_ptr<const backend_set> backends_;
    const answer_room room_{
        .memory = std::make_shared<shared_room>(options_.answer_memory),
        .disk = std::make_shared<disk_room>(options_.answer_spool),
    };
    mutable once_in_a_while tells_of_disk_{};
};

/// The connections of a loop.
struct proxy_connections {
    explicit proxy_connections(std::shared_ptr<const proxy_core> core);

    // Kept, because a loop finds this by its address.
    const std::shared_ptr<const proxy_core> of;
    const std::chrono::nanoseconds wait; // of a request, for places
    backend_connections pools;
};

[[nodiscard]] std::shared_ptr<proxy_connections>
connections_of(exchange& with, const std::shared_ptr<const proxy_core>& core);

} // namespace simplenet::v0::http::detail
