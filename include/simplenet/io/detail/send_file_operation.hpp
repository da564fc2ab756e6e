#pragma once
// send_file_operation: awaited by async_send_file() on a stream of the library. Layer io, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/io/detail/operation.hpp>
#include <simplenet/io/send_file_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The count of a part of a file, reduced so that it can be added to the sizes of head and tail.
[[nodiscard]] inline std::size_t file_bytes(std::uint64_t count,
                                            const send_file_options& options) noexcept {
    const std::size_t room = SIZE_MAX - options.head.size() - options.tail.size();
    return static_cast<std::size_t>(std::min<std::uint64_t>(count, room));
}

/// Sends a head, a part of a file and a tail, as far as the kernel can read the file itself.
class [[nodiscard]] send_file_operation final : public whole_operation<starts::writes> {
public:
    /// @pre There is a byte to send: a transfer of nothing would wait for room.
    send_file_operation(socket_record* of, int from, std::uint64_t at, std::uint64_t count,
                        const send_file_options& options) noexcept
        : whole_operation{of, request::perform_write, nullptr, file_bytes(count, options)}
        , file_{from}
        , offset_{at}
        , around_{options} {}

    [[nodiscard]] const char* name() const noexcept override;

private:
    bool perform() noexcept override;
    bool read_and_send() noexcept;
    bool send_from_file() noexcept;
    bool send_around(const_buffer middle) noexcept;
    bool over(std::ptrdiff_t count) noexcept;
    void find_end() noexcept;

    [[nodiscard]] const_buffer rest_of_head() const noexcept {
        return around_.head.subspan(std::min(moved, around_.head.size()));
    }
    [[nodiscard]] std::size_t sent_of_file() const noexcept {
        return std::min(moved - std::min(moved, around_.head.size()), size);
    }
    [[nodiscard]] const_buffer rest_of_tail() const noexcept {
        const std::size_t before = around_.head.size() + size;
        return around_.tail.subspan(moved - std::min(moved, before));
    }

    // operation::size is the number of bytes of the file to send, which falls if it ends before.
    int file_; // borrowed
    bool end_known_ = false;
    bool unreadable_ = false; // a sandbox refuses pread(2)
    std::uint64_t offset_;    // of the first byte in the file
    send_file_options around_;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
