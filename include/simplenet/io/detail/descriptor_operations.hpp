#pragma once
// send_descriptors_operation, receive_descriptors_operation: the awaitables that pass descriptors
// over Unix domain streams. Layer io, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/io/detail/stream_operations.hpp>
#include <simplenet/socket/descriptor_transfers.hpp>

#include <cstddef>
#include <expected>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Awaitable of send_descriptors(); the contract is documented there.
class [[nodiscard]] send_descriptors_operation final : public whole_operation<starts::writes> {
public:
    /// @pre `bytes` is not empty.
    send_descriptors_operation(socket_record* of, const_buffer bytes,
                               std::span<const int> several) noexcept
        : whole_operation{of, request::perform_write, const_cast<std::byte*>(bytes.data()),
                          bytes.size()}
        , several_{several} {
        SIMPLENET_EXPECTS(!bytes.empty(), "descriptors travel with at least one byte");
    }
    send_descriptors_operation(socket_record* of, const_buffer bytes, int single) noexcept
        : send_descriptors_operation{of, bytes, std::span<const int>{}} {
        single_ = single;
        is_single_ = true;
    }

    [[nodiscard]] const char* name() const noexcept override;

private:
    bool perform() noexcept override;
    [[nodiscard]] std::span<const int> descriptors() const noexcept {
        return is_single_ ? std::span{&single_, 1} : several_;
    }

    std::span<const int> several_; // borrowed
    int single_ = -1;
    bool is_single_ = false;
};

/// Awaitable of receive_descriptors(); the contract is documented there.
class [[nodiscard]] receive_descriptors_operation final
    : public awaitable_operation<starts::reads> {
public:
    /// @pre `into` is not empty.
    receive_descriptors_operation(socket_record* of, mutable_buffer into,
                                  std::size_t limit) noexcept
        : awaitable_operation{of, request::perform_read, into.data(), into.size()}
        , most_{limit} {
        SIMPLENET_EXPECTS(!into.empty(), "receive_descriptors() into an empty buffer");
    }

    std::expected<received_descriptors, transfer_error> await_resume() noexcept {
        if (error != 0) return std::unexpected{transfer_error{.code = code(), .transferred = 0}};
        if (refused_)
            return std::unexpected{transfer_error{.code = refused_, .transferred = moved}};
        return received_descriptors{moved, std::move(came_)};
    }

    [[nodiscard]] const char* name() const noexcept override;

private:
    bool perform() noexcept override;

    std::size_t most_;
    std::vector<unique_fd> came_; // closed with this if not taken
    std::error_code refused_;     // why there are none although bytes arrived
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
