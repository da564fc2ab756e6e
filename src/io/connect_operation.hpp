#pragma once
// connect_operation: awaited by async_connect(). Layer io, private.

#include "ip/native.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/io/detail/operation.hpp>

namespace simplenet::v0::detail {

/// Waits until a socket is connected, or connecting fails.
class [[nodiscard]] connect_operation final : public awaitable_operation<starts::writes> {
public:
    connect_operation(socket_record* of, const native_address& to) noexcept
        : awaitable_operation{of, request::connect}
        , peer{to} {}

    result<> await_resume() const noexcept {
        if (error != 0) return fail(code());
        return {};
    }

    // Read by the backends.
    const native_address& peer; // borrowed until the await returns
    bool called = false;        // epoll: connect(2) was called, and continues in the background
};

} // namespace simplenet::v0::detail
