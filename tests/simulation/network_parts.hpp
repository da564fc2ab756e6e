#pragma once
// The parts of a simulated network. Only for its own sources.

#include "simulation/network.hpp"
#include "simulation/socket_name.hpp"

#include <algorithm>
#include <tuple>

namespace simplenet::v0::simulation {

constexpr std::size_t most_datagrams = 10; // in the queue of a local socket

/// Bytes in the order of their arrival.
class byte_queue {
public:
    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() - first_; }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data() + first_; }
    void add(const std::byte* from, std::size_t count) {
        bytes_.insert(bytes_.end(), from, from + count);
    }
    void drop(std::size_t count) {
        first_ += count;
        if (first_ == bytes_.size()) {
            bytes_.clear();
            first_ = 0;
        } else if (first_ > 65536) {
            bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
    }
    void clear() noexcept {
        bytes_.clear();
        first_ = 0;
    }

private:
    std::vector<std::byte> bytes_;
    std::size_t first_ = 0;
};

enum class network::step : std::uint8_t {
    deliver, // bytes or the end of a stream reach the other side
    reset,   // a reset reaches the other side
    knock,   // a SYN; `detail` counts them
    answer,  // the SYN of the other side
    refuse,  // no listener
    arrive,  // a datagram, the flight `detail`
    tell,    // another attempt is worthwhile
};

struct network::event {
    nanoseconds at;
    std::uint32_t order; // among those of the same time
    std::uint64_t sequence;
    step what;
    id about;
    std::uint32_t detail;

    // The greatest element of a heap is first.
    friend bool operator<(const event& left, const event& right) noexcept {
        return std::tie(left.at, left.order, left.sequence) >
               std::tie(right.at, right.order, right.sequence);
    }
};

/// One socket. Lives on after close() while the network still works for it.
struct network::node {
    id number;
    int fd = -1; // as long as its owner has it
    int domain;
    int type;
    name local;
    name remote;

    // A stream.
    bool connecting = false;
    bool connected = false;
    bool dead = false; // reset, or closed by both sides
    int error = 0;     // SO_ERROR
    id peer = 0;
    byte_queue received;
    byte_queue sent; // and not yet received
    std::size_t receive_room = 0;
    std::size_t send_room = 0;
    bool no_more = false; // nothing is sent after the bytes in `sent`
    bool end_sent = false;
    bool end_received = false;
    bool reads_end = false; // shutdown(2) of reading
    bool delivering = false;
    bool wants_room = false;
    bool aborts = false; // SO_LINGER of 0
    bool gone = false;   // closed: nothing will be read

    // A listener.
    bool listening = false;
    std::size_t backlog_limit = 0;
    std::deque<id> backlog;

    // Datagrams.
    std::deque<datagram> arrived;

    std::map<std::pair<int, int>, std::vector<char>> options;
    std::vector<registration> registrations;

    [[nodiscard]] bool is_stream() const noexcept { return type == SOCK_STREAM; }
    [[nodiscard]] bool is_local() const noexcept { return domain == AF_UNIX; }
    [[nodiscard]] std::size_t room_to_receive() const noexcept {
        return receive_room - std::min(receive_room, received.size());
    }
    int take_error() noexcept { return std::exchange(error, 0); }
};

struct network::epoll_set {
    std::vector<id> ready;
    std::map<int, std::uint64_t> others; // real files, with their data
};

} // namespace simplenet::v0::simulation
