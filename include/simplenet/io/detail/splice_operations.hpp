#pragma once
// send_pipe_operation: awaited by async_copy() between two streams of the library. Layer io,
// private.

#include <simplenet/io/detail/operation.hpp>

#include <cstddef>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Writes the contents of a pipe.
class [[nodiscard]] send_pipe_operation final : public whole_operation<starts::writes> {
public:
    /// @pre `count` is not 0.
    send_pipe_operation(socket_record* of, int from, std::size_t count) noexcept
        : whole_operation{of, request::perform_write, nullptr, count}
        , pipe_{from} {}

    [[nodiscard]] const char* name() const noexcept override;

private:
    bool perform() noexcept override;

    int pipe_; // borrowed
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
