#include "http/server/service.hpp"

namespace simplenet::v0::http::detail {

bool server_state::replace(route_table routes, const server_options* options,
                           [[maybe_unused]] const tls::context* context) {
    const std::lock_guard locked{mutex_};
    auto next = options != nullptr
                    ? std::make_shared<const serving>(std::move(routes), *options)
                    : std::make_shared<const serving>(std::move(routes), *served_.what);
#if SIMPLENET_HAS_TLS
    if (context != nullptr && !served_.handshakes) return false;
    // One of the limits is for handshakes, also where the context stays.
    if (context == nullptr && options != nullptr && served_.handshakes)
        context = &served_.handshakes->with;
    if (context != nullptr) {
        auto added = tls::detail::settings_of(*context, tls::server_options{.server = transport_});
        if (!added) return false;
        added->last_hello = next->with.last_request;
        failed_before_ += served_.handshakes->failed.load(std::memory_order_relaxed);
        served_.handshakes = std::move(added);
    }
#else
    if (context != nullptr) return false;
#endif
    // Nothing fails from here on: no request sees a part of it.
    served_.what = std::move(next);
    version_.fetch_add(1, std::memory_order_release);
    return true;
}

bool server_state::has_tls() const {
#if SIMPLENET_HAS_TLS
    const std::lock_guard locked{mutex_};
    return served_.handshakes != nullptr;
#else
    return false;
#endif
}

std::uint64_t server_state::handshakes_failed() const {
    const std::lock_guard locked{mutex_};
#if SIMPLENET_HAS_TLS
    if (served_.handshakes) {
        return failed_before_ + served_.handshakes->failed.load(std::memory_order_relaxed);
    }
#endif
    return failed_before_;
}

} // namespace simplenet::v0::http::detail
