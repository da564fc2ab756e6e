#pragma once
// server_metrics: the figures of a server in write_metrics(). Layer server, private.

#include "insight/metrics_source.hpp"

namespace simplenet::v0::detail {

class server_core;

/// A member of its core; published while the server serves.
class server_metrics final : public metrics_source {
public:
    explicit server_metrics(const server_core& of) noexcept
        : core_{of} {}

    void write_to(metrics_page& page) const override;

private:
    const server_core& core_;
};

} // namespace simplenet::v0::detail
