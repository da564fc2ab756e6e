#pragma once
// The awaitables of the datagram sockets: each waits until its system call would not block, and
// makes it. Layer io, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/socket/datagram_socket.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

class send_retry;

// One attempt each, in the form of operation::perform().
[[nodiscard]] bool perform_receive(operation& op, udp_datagram& about) noexcept;
[[nodiscard]] bool perform_receive(operation& op, local_message& about) noexcept;
[[nodiscard]] bool perform_receive(operation& op, std::span<incoming_datagram> into) noexcept;
[[nodiscard]] bool perform_receive(operation& op, std::span<incoming_message> into) noexcept;
[[nodiscard]] bool perform_send(operation& op, const std::optional<endpoint>& to,
                                const udp_send_options& options) noexcept;
[[nodiscard]] bool perform_send(operation& op, const std::optional<local_endpoint>& to,
                                send_retry& retry) noexcept;
[[nodiscard]] bool perform_send(operation& op, std::span<const outgoing_datagram> from,
                                send_retry& retry) noexcept;
[[nodiscard]] bool perform_send(operation& op, std::span<const outgoing_message> from,
                                send_retry& retry) noexcept;
[[nodiscard]] bool perform_send_segmented(operation& op, std::size_t segment_size,
                                          const std::optional<endpoint>& to,
                                          const udp_send_options& options) noexcept;

/// Retries later when no event announces room in the queue of a receiver: an AF_UNIX socket that is
/// not connected to the receiver is always writable (unix(7), poll(2)), and each failed attempt
/// raises another event.
class send_retry final : public timer_node {
public:
    send_retry() noexcept = default;
    send_retry(send_retry&& other) noexcept
        : timer_node{std::move(other)} {}

    void arm(operation& sender) noexcept;

private:
    void expired() noexcept override;

    operation* sender_ = nullptr; // contains this; set by arm()
    std::chrono::milliseconds pause_{0};
};

/// Awaitable of receive_from() and receive().
template <class About>
class [[nodiscard]] receive_datagram_operation final : public awaitable_operation<starts::reads> {
public:
    receive_datagram_operation(socket_record* of, mutable_buffer into) noexcept
        : awaitable_operation{of, request::perform_read, into.data(), into.size()} {
        SIMPLENET_EXPECTS(!into.empty(), "receiving into an empty buffer loses the datagram");
    }

    result<About> await_resume() const noexcept {
        if (error != 0) return fail(code());
        return about_;
    }

private:
    bool perform() noexcept override { return perform_receive(*this, about_); }

    About about_;
};

/// Awaitable of receive_batch().
template <class Slot>
class [[nodiscard]] receive_batch_operation final : public some_operation<starts::reads> {
public:
    receive_batch_operation(socket_record* of, std::span<Slot> into) noexcept
        : some_operation{of, request::perform_read}
        , into_{into} {
        SIMPLENET_EXPECTS(!into.empty(), "receive_batch() into an empty span");
    }

private:
    bool perform() noexcept override { return perform_receive(*this, into_); }

    std::span<Slot> into_;
};

/// Base of operations that send with perform_send(), on top of `Form`.
template <class Form>
class sending_operation : public Form {
protected:
    explicit sending_operation(socket_record* of) noexcept
        : Form{of, request::perform_write} {}
    // The bytes are only read, so casting const away is safe.
    sending_operation(socket_record* of, const_buffer from) noexcept
        : Form{of, request::perform_write, const_cast<std::byte*>(from.data()), from.size()} {}
    sending_operation(sending_operation&& other) noexcept = default;
    ~sending_operation() = default;
};

/// Awaitable of send_to() and send() of UDP.
class [[nodiscard]] send_datagram_operation final
    : public sending_operation<some_operation<starts::writes>> {
public:
    send_datagram_operation(socket_record* of, const_buffer from, const std::optional<endpoint>& to,
                            const udp_send_options& options) noexcept
        : sending_operation{of, from}
        , to_{to}
        , options_{options} {}

private:
    bool perform() noexcept override { return perform_send(*this, to_, options_); }

    std::optional<endpoint> to_;
    udp_send_options options_;
};

/// Awaitable of send_segmented().
class [[nodiscard]] send_segmented_operation final
    : public sending_operation<whole_operation<starts::writes>> {
public:
    send_segmented_operation(socket_record* of, const_buffer from, std::size_t segment_size,
                             const std::optional<endpoint>& to,
                             const udp_send_options& options) noexcept
        : sending_operation{of, from}
        , segment_size_{segment_size}
        , to_{to}
        , options_{options} {
        SIMPLENET_EXPECTS(segment_size != 0, "send_segmented() into segments of no size");
    }

private:
    bool perform() noexcept override {
        return perform_send_segmented(*this, segment_size_, to_, options_);
    }

    std::size_t segment_size_;
    std::optional<endpoint> to_;
    udp_send_options options_;
};

/// Awaitable of send_to() and send() of Unix domain datagrams.
class [[nodiscard]] send_message_operation final
    : public sending_operation<some_operation<starts::writes>> {
public:
    send_message_operation(socket_record* of, const_buffer from,
                           const std::optional<local_endpoint>& to) noexcept
        : sending_operation{of, from}
        , to_{to} {}

private:
    bool perform() noexcept override { return perform_send(*this, to_, retry_); }

    std::optional<local_endpoint> to_;
    send_retry retry_;
};

/// Awaitable of send_batch().
template <class Slot>
class [[nodiscard]] send_batch_operation final
    : public sending_operation<whole_operation<starts::writes>> {
public:
    send_batch_operation(socket_record* of, std::span<const Slot> from) noexcept
        : sending_operation{of}
        , from_{from} {}

private:
    bool perform() noexcept override { return perform_send(*this, from_, retry_); }

    std::span<const Slot> from_;
    send_retry retry_;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
