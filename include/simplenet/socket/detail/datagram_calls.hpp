#pragma once
// The calls behind the members of datagram_peer.hpp, on a descriptor, and the segment limit that a
// UDP socket remembers. Layer socket.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/datagram_socket.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The largest segment size with which send_segmented() lets the kernel split. Lowered when the
/// kernel or the device refuses; one for each socket.
class segment_limit {
public:
    static constexpr std::size_t none = 65'535;

    segment_limit() noexcept = default;
    segment_limit(const segment_limit& other) noexcept
        : most_{other.most_.load(std::memory_order_relaxed)} {}
    segment_limit& operator=(const segment_limit& other) noexcept {
        set(other.get());
        return *this;
    }
    ~segment_limit() = default;

    // Relaxed: any number of threads may send, and a stale value costs one refused attempt.
    [[nodiscard]] std::size_t get() const noexcept { return most_.load(std::memory_order_relaxed); }
    void set(std::size_t most) noexcept {
        most_.store(static_cast<std::uint16_t>(most), std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint16_t> most_ = none;
};

namespace datagrams {

// One system call each. Documented at the members.

[[nodiscard]] result<> connect(int fd, const endpoint& peer) noexcept;
[[nodiscard]] result<> connect(int fd, const local_endpoint& peer) noexcept;
[[nodiscard]] result<> disconnect(int fd) noexcept;
[[nodiscard]] result<udp_error> take_error(int fd) noexcept;

} // namespace datagrams

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
