#pragma once
// accept_operation: the awaitable of the listeners' accept(). Layer io, private.

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The part that the backends know.
class accept_base : public awaitable_operation<starts::reads> {
public:
    unique_fd accepted; // its outcome; closed with this if it is not taken

protected:
    explicit accept_base(socket_record* of) noexcept
        : awaitable_operation{of, request::accept} {}
};

/// Awaitable of accept(); the contract is documented with the listeners.
template <class Stream, class Socket>
class [[nodiscard]] accept_operation final : public accept_base {
public:
    explicit accept_operation(socket_record* of) noexcept
        : accept_base{of} {}

    result<Stream> await_resume() {
        if (error != 0) return fail(code());
        return Stream{socket_access::make<Socket>(std::move(accepted))};
    }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
