#pragma once
// spooled_body: a body that is read whole before a backend is taken. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/io/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace simplenet::v0::http::detail {

/// Holds a body: its first bytes in memory, the rest in a file that has no name.
///
/// So a slow upload costs no backend, and the body can be sent again to another one.
///
/// Promises: memory grows with the bytes that have arrived, up to `memory` bytes, and 64 KiB more
/// while a larger body is written or read. The disk is used on the threads of run_blocking(). The
/// file is gone with this object, or with the process, however that ends. A body that could not be
/// read or stored whole has no readable bytes.
///
/// An async_reader once it is filled. Loop thread only.
class spooled_body {
public:
    static constexpr std::size_t default_memory = std::size_t{64} * 1024;

    /// @param directory  For the file; borrowed.
    explicit spooled_body(std::string_view directory, std::size_t memory = default_memory) noexcept
        : directory_{directory}
        , most_in_memory_{memory} {}
    spooled_body(const spooled_body&) = delete;
    spooled_body& operator=(const spooled_body&) = delete;
    ~spooled_body() = default;

    /// Reads `from` to its end. Bounds nothing: the reader has a limit of its own.
    ///
    /// @pre Called once.
    /// @par Errors
    /// - Those of the reader.
    /// - What open(2), pwrite(2) report, see disk_status(); `std::errc::not_enough_memory`.
    /// @par Cancellation
    /// What was read is lost.
    [[nodiscard]] task<result<>> fill(async_reader_ref from);
    /// The status that tells why fill() failed: 507 if the disk is full, 500 for its other
    /// failures; 0: the reader failed, or the caller was stopped.
    [[nodiscard]] unsigned disk_status() const noexcept { return disk_status_; }

    /// Bytes in all.
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    /// Whether front() is the whole body.
    [[nodiscard]] bool is_in_memory() const noexcept { return size_ == in_memory_; }
    /// The bytes in memory, from the beginning of the body.
    [[nodiscard]] const_buffer front() const noexcept { return {memory_.data(), in_memory_}; }

    /// Reads on; `end_of_stream` at the end.
    ///
    /// @pre `into` is not empty, fill() has succeeded, and no other read is in flight.
    /// @par Errors
    /// What pread(2) reports; `std::errc::io_error` if the file has become shorter.
    /// @par Cancellation
    /// Nothing is lost.
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into);
    /// Reads from the beginning again, or from `offset`, at most size().
    void rewind(std::uint64_t offset = 0) noexcept { at_ = offset; }

private:
    class file;

    [[nodiscard]] mutable_buffer room();
    [[nodiscard]] task<result<>> store();

    std::string_view directory_;
    std::size_t most_in_memory_;
    scratch memory_;
    std::size_t in_memory_ = 0;
    std::uint64_t size_ = 0;
    std::uint64_t at_ = 0;
    unsigned disk_status_ = 0;
    // Shared with a call on another thread, which the end of the loop does not wait for. Null: all
    // bytes are in memory.
    std::shared_ptr<file> file_;
};

} // namespace simplenet::v0::http::detail
