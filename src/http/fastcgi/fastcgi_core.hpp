#pragma once
// fastcgi_core: a FastCGI gateway, shared by its handles and the loops. Layer http, private.

#include "http/fastcgi/fastcgi_exchange.hpp"
#include "http/fastcgi/request_params.hpp"
#include "http/fastcgi/script_finder.hpp"
#include "http/fastcgi/settings.hpp"
#include "http/gateway/backend_connections.hpp"
#include "http/gateway/backend_set.hpp"
#include "http/gateway/once_in_a_while.hpp"
#include "http/gateway/shared_room.hpp"
#include "http/gateway/spooled_body.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/fastcgi.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace simplenet::v0::http::detail {

/// What one loop has of a gateway.
struct fastcgi_loop {
    explicit fastcgi_loop(std::shared_ptr<const fastcgi_core> of);

    // Keeps the address of the core, by which the loop knows this object, from being used again.
    const std::shared_ptr<const fastcgi_core> core;
    backend_connections connections;
    script_finder scripts;
};

class fastcgi_core : public std::enable_shared_from_this<fastcgi_core> {
public:
    fastcgi_core(const fastcgi_options& options, std::string_view prefix);

    /// As fastcgi_handler::attempt().
    [[nodiscard]] task<result<unsigned>> attempt(request& asked, response& answer) const;
    [[nodiscard]] const std::shared_ptr<const backend_set>& backends() const noexcept {
        return backends_;
    }
    [[nodiscard]] const fastcgi_settings& settings() const noexcept { return settings_; }

private:
    struct call;

    // --- fastcgi_core.cpp: the request, and who gets it ---
    /// The decoded path. Nothing: the answer is 404. Refers to `asked` or `spare`.
    [[nodiscard]] std::optional<std::string_view> path_to_serve(const request& asked,
                                                                std::string& spare) const;
    /// The index in the directory `path`, which refers to `spare` unless that is empty; as the
    /// result does.
    [[nodiscard]] std::string_view with_index(std::string_view path, std::string& spare) const;
    /// 0: there is a body, or none. Otherwise the status that tells why it could not be read.
    [[nodiscard]] task<result<unsigned>> read_body(request& asked,
                                                   std::optional<spooled_body>& body) const;
    /// Asks one backend after the other.
    [[nodiscard]] task<result<unsigned>> ask(call& with) const;
    void report(gateway_event kind, const backend_lease* at, std::string_view text,
                std::error_code why) const noexcept;

    // --- pass_answer.cpp: the answer ---
    /// Passes on the answer that has begun.
    [[nodiscard]] task<result<unsigned>> pass_on(call& with, fastcgi_exchange& from,
                                                 const backend_lease& lease) const;

    const fastcgi_settings settings_;
    const std::shared_ptr<const backend_set> backends_;
    const answer_room room_{
        .memory = std::make_shared<shared_room>(settings_.options.answer_memory),
        .disk = std::make_shared<disk_room>(settings_.options.answer_spool),
    };
    mutable once_in_a_while tells_of_disk_{};
};

/// A request and what is needed to ask for its answer.
struct fastcgi_core::call {
    request& asked;
    response& answer;
    fastcgi_loop& on;
    growing_bytes front{}; // the records up to the body, or all of them
    std::optional<spooled_body> body{};
    std::uint64_t size = 0;   // bytes of the body behind `front`
    bool is_streamed = false; // it is read from the client
    unsigned status = 502;    // if no further backend answers
};

} // namespace simplenet::v0::http::detail
