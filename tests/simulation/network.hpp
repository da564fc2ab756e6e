#pragma once
// network: sockets that exist only in this process, and time that passes only when everything
// waits.
//
// Returns the same values as sys/calls.hpp: counts, and negated errnos. Each descriptor is a real
// one, of /dev/null, which reserves its number. One thread.
// one, of /dev/null, so that its number is nobody else's. One thread.

#include "simulation/conditions.hpp"
#include "simulation/event_log.hpp"
#include "simulation/random_source.hpp"
#include "simulation/simulated_clock.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace simplenet::v0::simulation {

using std::chrono::nanoseconds;

class network {
public:
    network(std::uint64_t seed, const conditions& like, simulated_clock& time, event_log& log);
    network(const network&) = delete;
    network& operator=(const network&) = delete;
    ~network();

    // --- for scenarios ---

    /// Nothing passes between the two hosts (addresses as text) until heal(). Bytes of streams
    /// wait, datagrams are lost.
    void part(std::string_view one, std::string_view other);
    void heal();
    /// The network gives up the connection of `fd`: both ends get a reset.
    void abort(int fd);

    /// The number of descriptors that are not closed.
    [[nodiscard]] std::size_t open_descriptors() const noexcept { return open_; }
    /// The bytes, datagrams or connections that a read of `fd` would find.
    [[nodiscard]] std::size_t waiting_at(int fd) const noexcept;
    /// Bytes written to `fd` that have not arrived.
    [[nodiscard]] std::size_t unsent_at(int fd) const noexcept;
    [[nodiscard]] const conditions& like() const noexcept { return like_; }
    /// Sets all chances to zero; latency and room remain.
    void be_kind() noexcept;

    /// Called once, when a loop waits for something that never comes, or never stops polling; `why`
    /// says which.
    void (*on_stuck)(void*, std::string_view why) = nullptr;
    void* on_stuck_argument = nullptr;

    // --- system calls ---

    [[nodiscard]] bool owns(int fd) const noexcept {
        const auto at = static_cast<std::size_t>(fd);
        return fd >= 0 && at < by_descriptor_.size() && by_descriptor_[at] != nullptr;
    }

    int socket(int domain, int type);
    int socketpair(int type, int (&fds)[2]);
    int bind(int fd, const sockaddr* at, socklen_t size);
    int listen(int fd, int backlog);
    int accept(int fd);
    int connect(int fd, const sockaddr* to, socklen_t size);
    int shutdown(int fd, int how);
    int close(int fd);
    int getsockname(int fd, sockaddr* name, socklen_t& size);
    int getpeername(int fd, sockaddr* name, socklen_t& size);
    int setsockopt(int fd, int level, int name, const void* value, socklen_t size);
    int getsockopt(int fd, int level, int name, void* value, socklen_t& size);
    /// Never waits.
    int poll(int fd, short events);
    [[nodiscard]] bool has_path(const char* path) const;
    /// 0, or ENOENT if no socket was at `path`.
    int unlink(const char* path);
    /// For a descriptor that does not belong to this network.
    void closed_elsewhere(int fd);

    ssize_t recv(int fd, void* data, std::size_t size, int flags);
    ssize_t send(int fd, const void* data, std::size_t size, int flags);
    ssize_t recvmsg(int fd, msghdr& message, int flags);
    ssize_t sendmsg(int fd, const msghdr& message, int flags);
    ssize_t sendfile(int to, int from, off_t offset, std::size_t size);
    /// Whether a signal handler interrupts the call.
    bool interrupts() noexcept;

    int epoll_control(int epoll, int action, int fd, epoll_event* event);
    /// Returns the events of simulated sockets in `epoll`; lets time pass until there is one, or
    /// another file that `epoll` watches has one. Without a `timeout` it waits forever.
    int epoll_wait(int epoll, std::span<epoll_event> events, std::optional<nanoseconds> timeout);

    // --- for drivers ---

    /// The present result of poll(2) for `fd`, as EPOLL... bits.
    [[nodiscard]] unsigned readiness(int fd) const noexcept;

private:
    using id = std::uint32_t; // 0: none
    using name = std::string; // the bytes of a sockaddr

    struct datagram {
        name from;
        std::vector<std::byte> bytes;
    };
    struct registration {
        int epoll = -1;
        unsigned interest = 0;
        std::uint64_t data = 0;
        bool resting = false; // one-shot, and it has fired
        bool queued = false;  // on the list of its epoll
    };

    struct node;
    struct epoll_set;
    struct event;
    enum class step : std::uint8_t;

    node& make(int domain, int type);
    int give_descriptor(node& to);
    [[nodiscard]] node& of(int fd) const noexcept {
        return *by_descriptor_[static_cast<std::size_t>(fd)];
    }
    [[nodiscard]] nanoseconds latency() noexcept;
    [[nodiscard]] nanoseconds now() const noexcept { return time_.elapsed(); }
    void note(const node& about, std::string_view what, std::int64_t count);

    void schedule(nanoseconds at, step what, id about, std::uint32_t detail = 0);
    void happen(const event& what);
    void advance_to(nanoseconds moment);
    [[nodiscard]] bool parted(const name& one, const name& other) const;

    void deliver(node& from);
    void want_delivery(node& from);
    void make_way(node& reader);
    void finish_sending(node& from);
    void reset(node& at, int error);
    void send_reset(node& to);
    void knock(node& client, unsigned attempt);
    void established(node& client);
    void arrive(std::uint32_t flight);
    void put(node& into, datagram&& what);
    ssize_t send_datagram(node& from, const name& to, std::vector<std::byte>&& bytes);
    [[nodiscard]] std::size_t room_to_send(const node& from) const noexcept;
    [[nodiscard]] std::size_t room_in_all(const node& from) const noexcept;
    ssize_t take_stream(node& from, std::span<const iovec> pieces, std::size_t most);
    ssize_t give_stream(node& to, std::span<const iovec> places, int flags);
    ssize_t give_datagram(node& to, msghdr& message, int flags);

    [[nodiscard]] node* listener_at(const name& at);
    [[nodiscard]] node* bound_at(int type, const name& at);
    [[nodiscard]] name any_port(const name& host);
    void forget_name(node& of);

    [[nodiscard]] unsigned readiness(const node& of) const noexcept;
    [[nodiscard]] unsigned look(node& at) const noexcept;
    /// Something changed about `at`: its epolls are notified, after a while.
    void tell(node& at);
    void report(node& at);
    int collect(epoll_set& set, std::span<epoll_event> events);
    void give_up(std::string_view why);

    random_source random_;
    conditions like_;
    simulated_clock& time_;
    event_log& log_;

    std::vector<std::unique_ptr<node>> nodes_; // by id; 0 is unused
    std::vector<node*> by_descriptor_;
    std::map<int, std::unique_ptr<epoll_set>> epolls_;
    std::map<name, std::vector<id>> listeners_;
    std::map<std::pair<int, name>, id> bound_;
    std::vector<event> events_; // a heap, the next one first
    std::vector<event> held_;   // by a partition
    std::vector<std::pair<id, datagram>> flights_;
    std::vector<std::uint32_t> free_flights_;
    std::set<std::pair<name, name>> parted_;
    std::uint64_t sequence_ = 0;
    std::size_t open_ = 0;
    std::uint16_t next_port_ = 32768;
    std::uint32_t next_name_ = 1;
    unique_fd null_; // the file of all descriptors
    bool stuck_ = false;
};

} // namespace simplenet::v0::simulation
