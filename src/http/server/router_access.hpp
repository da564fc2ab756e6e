#pragma once
// router_access: the routes behind a router. Layer http, private.

#include "http/server/route_table.hpp"

#include <simplenet/http/router.hpp>

#include <memory>
#include <utility>

namespace simplenet::v0::http::detail {

struct router_access {
    [[nodiscard]] static std::unique_ptr<route_table> take(router&& from) noexcept {
        return std::move(from.table_);
    }
};

} // namespace simplenet::v0::http::detail
