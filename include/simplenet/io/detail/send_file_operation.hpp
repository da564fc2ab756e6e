#pragma once
// send_file_operation: awaited by async_send_file() on a stream of the library. Layer io, private.

#include <simplenet/io/detail/operation.hpp>

#include <cstdint>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Sends a part of a file, as far as sendfile(2) can do it.
class [[nodiscard]] send_file_operation final : public whole_operation<starts::writes> {
public:
    /// @pre `count` is not 0: a transfer of nothing would wait for room.
    send_file_operation(socket_record* of, int from, std::uint64_t at, std::uint64_t count) noexcept
        : whole_operation{of, request::perform_write, nullptr, count}
        , file_{from}
        , offset_{at} {}

    [[nodiscard]] const char* name() const noexcept override;

private:
    bool perform() noexcept override;

    int file_;             // borrowed
    std::uint64_t offset_; // of the first byte in the file
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
