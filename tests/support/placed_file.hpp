#pragma once
// placed_file: a file in memory with the beginning of some placed_bytes.

#include "support/placed_bytes.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/mman.h>
#include <unistd.h>

namespace simplenet::v0::testing {

/// Grows by content that never changes: the kernel may still read what was sent from it.
class placed_file {
public:
    explicit placed_file(const placed_bytes& content)
        : content_{content} {}

    /// Lets the file have the first `size` bytes of its content, at least.
    void grow_to(std::uint64_t size) {
        if (size <= size_) return;
        const auto bytes = content_.piece(size_, static_cast<std::size_t>(size - size_));
        for (std::span<const std::byte> rest{bytes}; !rest.empty();) {
            const ssize_t count =
                checked(::pwrite(file_.get(), rest.data(), rest.size(), static_cast<off_t>(size_)));
            rest = rest.subspan(static_cast<std::size_t>(count));
            size_ += static_cast<std::uint64_t>(count);
        }
    }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] int fd() const noexcept { return file_.get(); }

private:
    placed_bytes content_;
    unique_fd file_{checked(::memfd_create("placed bytes", MFD_CLOEXEC))};
    std::uint64_t size_ = 0;
};

} // namespace simplenet::v0::testing
