#pragma once
// server_access: what the library does with a server and users cannot. Layer server, private.

#include <simplenet/server/basic_server.hpp>

#include <memory>
#include <utility>

namespace simplenet::v0::detail {

/// A friend of basic_server.
struct server_access {
    [[nodiscard]] static server_core& core_of(const basic_server& server) noexcept {
        return server.core();
    }
    [[nodiscard]] static result<> begin(basic_server& server,
                                        std::unique_ptr<any_handler> handler) {
        return server.begin(std::move(handler));
    }
};

} // namespace simplenet::v0::detail
