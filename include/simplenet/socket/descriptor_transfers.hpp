#pragma once
// received_descriptors, and the sending and receiving of open descriptors over Unix domain streams
// that are not awaited. Layer socket.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>

#include <concepts>
#include <cstddef>
#include <expected>
#include <span>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// How many descriptors the kernel takes along with one send (unix(7), SCM_MAX_FD).
inline constexpr std::size_t most_descriptors = 253;

/// Bytes that were received, and the descriptors that came with them.
struct received_descriptors {
    received_descriptors() noexcept = default;
    // A constructor, as GCC 12 destroys the members of aggregates twice in co_await expressions.
    received_descriptors(std::size_t bytes, std::vector<unique_fd> came) noexcept
        : size{bytes}
        , descriptors{std::move(came)} {}

    std::size_t size = 0;               // bytes in the buffer, at least 1
    std::vector<unique_fd> descriptors; // in the order of the sender; those left here are closed
};

namespace detail {

namespace streams {

/// A negated errno, or how many bytes went, the descriptors with the first of them. At most
/// most_descriptors.
[[nodiscard]] std::ptrdiff_t send_descriptors(int fd, const_buffer bytes,
                                              std::span<const int> descriptors) noexcept;

/// A negated errno, or how many bytes came, 0 at the end of the stream. Then `into` has the
/// descriptors; or it has none, and `refused` says why they were closed.
[[nodiscard]] std::ptrdiff_t receive_descriptors(int fd, mutable_buffer bytes, std::size_t most,
                                                 std::vector<unique_fd>& into,
                                                 std::error_code& refused) noexcept;

} // namespace streams

/// Of Unix domain streams, one system call each.
template <class Base>
class with_descriptor_transfers : public Base {
public:
    using Base::Base;

    /// Writes at least one byte of `bytes` and sends duplicates of `descriptors` with the first;
    /// what was not taken is for write_some().
    ///
    /// @pre `bytes` is not empty: there is nothing else that descriptors could travel with.
    /// @param descriptors  Borrowed for the call; close them or not afterwards.
    /// @return The number of bytes taken. On failure nothing went, descriptors included.
    ///
    /// @par Errors
    /// - `errc::limit_exceeded`: more than most_descriptors.
    /// - `std::errc::bad_file_descriptor`: one of them is not open.
    /// - ETOOMANYREFS: as many as the process may open are on their way already (unix(7)).
    /// - As of write_some() otherwise.
    [[nodiscard]] result<std::size_t> send_descriptors(const_buffer bytes,
                                                       std::span<const int> descriptors) noexcept;
    /// The same for one descriptor. A template, so that `{}` is none of them, and not number 0.
    template <std::same_as<int> Descriptor>
    [[nodiscard]] result<std::size_t> send_descriptors(const_buffer bytes,
                                                       Descriptor descriptor) noexcept {
        return send_descriptors(bytes, std::span<const int>{&descriptor, 1});
    }

    /// Reads as read_some() does, and takes the descriptors that were sent with these bytes.
    ///
    /// They come with the first of the bytes that they were sent with, and a call ends where they
    /// were attached. Every other read of those bytes closes them.
    ///
    /// @pre `into` is not empty.
    /// @param most  A peer that sends more at once is refused.
    ///
    /// @par Errors
    /// With the number of bytes that came nevertheless. All descriptors that came are then closed.
    /// - `errc::limit_exceeded`: more than `most` descriptors.
    /// - `std::errc::too_many_files_open`: the process has no room for them (MSG_CTRUNC).
    /// - As of read_some() otherwise.
    [[nodiscard]] std::expected<received_descriptors, transfer_error>
    receive_descriptors(mutable_buffer into, std::size_t most = most_descriptors);
};

/// The result of receive_descriptors(), for a loop or not.
[[nodiscard]] std::expected<received_descriptors, transfer_error>
came_with(std::ptrdiff_t outcome, std::vector<unique_fd>&& descriptors,
          std::error_code refused) noexcept;

template <class Base>
result<std::size_t>
with_descriptor_transfers<Base>::send_descriptors(const_buffer bytes,
                                                  std::span<const int> descriptors) noexcept {
    if (descriptors.size() > most_descriptors) return fail(errc::limit_exceeded);
    const std::ptrdiff_t outcome =
        streams::send_descriptors(this->native_handle(), bytes, descriptors);
    if (outcome < 0)
        return fail(std::error_code(static_cast<int>(-outcome), std::system_category()));
    return static_cast<std::size_t>(outcome);
}

template <class Base>
std::expected<received_descriptors, transfer_error>
with_descriptor_transfers<Base>::receive_descriptors(mutable_buffer into, std::size_t most) {
    std::vector<unique_fd> came;
    std::error_code refused;
    const std::ptrdiff_t outcome =
        streams::receive_descriptors(this->native_handle(), into, most, came, refused);
    return came_with(outcome, std::move(came), refused);
}

} // namespace detail
} // namespace simplenet::v0

#pragma GCC visibility pop
