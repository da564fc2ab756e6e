#pragma once
// router_access: the routes behind a router. Layer http, private.

#include "http/server/route_table.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/http/router.hpp>

#include <memory>
#include <utility>

namespace simplenet::v0::http::detail {

struct router_access {
    /// @pre Not moved from.
    [[nodiscard]] static route_table take(router&& from) {
        SIMPLENET_EXPECTS(from.table_ != nullptr, "a router was used after it was moved from");
        const std::unique_ptr<route_table> table = std::move(from.table_);
        return std::move(*table);
    }
};

} // namespace simplenet::v0::http::detail
