#include "http/server/service.hpp"

#include "http/codec/date.hpp"

namespace simplenet::v0::http::detail {

#if SIMPLENET_HAS_TLS
namespace {

/// What the user of a browser sees who has written http:// before a port of https.
std::string answer_without_tls() {
    constexpr std::string_view text = "This port speaks HTTPS: the address begins with https://\n";
    std::string answer{"HTTP/1.1 400 Bad Request\r\nDate: "};
    answer.append(date_now()).append("\r\nContent-Type: text/plain\r\nContent-Length: ");
    answer.append(std::to_string(text.size())).append("\r\nConnection: close\r\n\r\n");
    return answer.append(text);
}

} // namespace

std::shared_ptr<tls::detail::handshake_settings>
handshakes_of(const tls::context& with, const simplenet::server_options& transport,
              const limits& of) {
    auto made = tls::detail::settings_of(with, tls::server_options{.server = transport});
    if (made) {
        made->last_hello = of.last_request;
        made->answer_without_tls = answer_without_tls;
    }
    return made;
}
#endif

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
        auto added = handshakes_of(*context, transport_, next->with);
        if (!added) return false;
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
