#include "http/proxy/proxy_core.hpp"

#include "http/codec/authority.hpp"
#include "http/codec/list.hpp"
#include "http/gateway/field_rules.hpp"
#include "http/gateway/spool_file.hpp"
#include "http/server/exchange.hpp"
#include "http/server/service.hpp"

#include <simplenet/http/client_options.hpp>

#include <algorithm>

namespace simplenet::v0::http::detail {

namespace {

[[nodiscard]] head_rules rules_of(const proxy_options& options) {
    if (!options.host.empty() && !valid_authority(options.host))
        refuse_option("the host for backends");
    if (!options.via.empty() && !is_token(options.via))
        refuse_option("the name of the proxy in Via");
    head_rules rules{.host = std::string{options.host},
                     .via = std::string{options.via},
                     .set = {},
                     .underscores = options.underscores};
    for (const field& each : options.fields) {
        const field_kind kind = kind_of_folded_field(each.name);
        const bool is_free = kind == field_kind::ordinary || kind == field_kind::kept;
        if (!is_free || !is_token(each.name) || !valid_field_value(each.value)) {
            refuse_option("a field for backends: " + std::string{each.name});
        }
        rules.set.add(each.name, trim_blanks(each.value));
    }
    return rules;
}

[[nodiscard]] std::shared_ptr<const client_settings> exchanges_of(const proxy_options& options) {
    const client_options with{.headers_within = options.head,
                              .body_idle = options.body_idle,
                              .total = {},
                              .status_line = options.status_line,
                              .header_bytes = options.header_bytes,
                              .header_count = options.header_count,
                              .user_agent = {}};
    return std::make_shared<const client_settings>(with, options.send_idle);
}

/// A limit of 0 is none.
[[nodiscard]] std::chrono::nanoseconds limit_of(std::chrono::nanoseconds time) noexcept {
    return time > std::chrono::nanoseconds::zero() ? time : std::chrono::nanoseconds::max();
}

} // namespace

proxy_core::proxy_core(const proxy_options& options)
    : options_{options}
    , rules_{rules_of(options)}
    , trusted_{options.trusted == nullptr ? address_set{} : *options.trusted}
    , directory_{options.temporary_directory.empty() ? default_temporary_directory()
                                                     : std::string{options.temporary_directory}}
    , exchanges_{exchanges_of(options)}
    , backends_{std::make_shared<const backend_set>(options.backends, options.retry_after)} {
    options_.backends = {};
    options_.trusted = nullptr;
    options_.host = options_.via = options_.temporary_directory = {};
    options_.fields = {};
}

void proxy_core::report(gateway_event kind, std::string_view backend, std::string_view text,
                        std::error_code error) const {
    if (options_.report == nullptr) return;
    options_.report({.kind = kind, .backend = backend, .text = text, .error = error},
                    options_.context);
}

void proxy_core::report_disk(std::error_code why) const {
    if (tells_of_disk_()) report(gateway_event::not_stored, {}, directory_, why);
}

proxy_connections::proxy_connections(std::shared_ptr<const proxy_core> core)
    : of{std::move(core)}
    , wait{limit_of(of->options().wait)}
    , pools{of->backends(),
            {.keep = of->options().keep_connections,
             .most = of->options().connections,
             .connect = of->options().connect,
             .idle = of->options().keep_alive}} {}

std::shared_ptr<proxy_connections> connections_of(exchange& with,
                                                  const std::shared_ptr<const proxy_core>& core) {
    return with.loop().local<proxy_connections>(
        core.get(), [&core] { return std::make_shared<proxy_connections>(core); });
}

} // namespace simplenet::v0::http::detail
