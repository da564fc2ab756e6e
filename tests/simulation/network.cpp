#include "simulation/network.hpp"

#include <simplenet/core/contract.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

namespace simplenet::inline v0::simulation {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::hours first_hour{1};
constexpr unsigned most_knocks = 6; // tcp(7), tcp_syn_retries
constexpr std::size_t most_datagrams = 10;
constexpr std::uint64_t most_events = 2'000'000;

// --- names: the bytes of a sockaddr, with nothing in them that makes equal ones differ
// --------------------------------------------------------------------------------------

using name = std::string;

template <class Native>
Native native(const name& of) noexcept {
    Native value{};
    std::memcpy(&value, of.data(), std::min(of.size(), sizeof value));
    return value;
}

template <class Native>
name name_of(const Native& value) {
    name bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

int family_of(const name& of) noexcept {
    return of.size() < sizeof(sa_family_t) ? AF_UNSPEC : native<sockaddr>(of).sa_family;
}

name name_of(const sockaddr* at, socklen_t size) {
    name bytes(reinterpret_cast<const char*>(at), size);
    if (family_of(bytes) == AF_INET) {
        auto address = native<sockaddr_in>(bytes);
        std::memset(&address.sin_zero, 0, sizeof address.sin_zero);
        return name_of(address);
    }
    if (family_of(bytes) == AF_INET6) {
        auto address = native<sockaddr_in6>(bytes);
        address.sin6_flowinfo = 0;
        return name_of(address);
    }
    // A path ends with its NUL or without it.
    constexpr std::size_t path = offsetof(sockaddr_un, sun_path);
    if (bytes.size() > path && bytes[path] != '\0') {
        const auto end = bytes.find('\0', path);
        if (end != name::npos) bytes.resize(end);
    }
    return bytes;
}

std::uint16_t port_of(const name& of) noexcept {
    // At the same place in both families.
    return ntohs(native<sockaddr_in>(of).sin_port);
}

name with_port(const name& of, std::uint16_t port) {
    auto changed = of;
    const std::uint16_t bytes = htons(port);
    std::memcpy(changed.data() + offsetof(sockaddr_in, sin_port), &bytes, sizeof bytes);
    return changed;
}

name host_of(const name& of) {
    return with_port(of, 0);
}

name v4(std::uint32_t address) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(address);
    return name_of(any);
}

name v6(const in6_addr& address) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_addr = address;
    return name_of(any);
}

bool is_any(const name& of) noexcept {
    if (family_of(of) == AF_INET) return native<sockaddr_in>(of).sin_addr.s_addr == INADDR_ANY;
    const auto address = native<sockaddr_in6>(of).sin6_addr;
    return std::memcmp(&address, &in6addr_any, sizeof address) == 0;
}

name any_of_family(const name& of) {
    return with_port(family_of(of) == AF_INET ? v4(INADDR_ANY) : v6(in6addr_any), port_of(of));
}

/// Where what goes to `to` comes from, if its sender did not say.
name own_host(const name& to) {
    if (family_of(to) == AF_INET6) return v6(in6addr_loopback);
    const std::uint32_t address = ntohl(native<sockaddr_in>(to).sin_addr.s_addr);
    return v4(address >> 24U == 127 ? INADDR_LOOPBACK : 0x0a000001);
}

name host_by_text(std::string_view text) {
    const std::string terminated{text};
    in_addr four{};
    if (::inet_pton(AF_INET, terminated.c_str(), &four) == 1) return v4(ntohl(four.s_addr));
    in6_addr six{};
    SIMPLENET_EXPECTS(::inet_pton(AF_INET6, terminated.c_str(), &six) == 1, "not an address");
    return v6(six);
}

int tell_name(const name& of, sockaddr* into, socklen_t& size) noexcept {
    std::memcpy(into, of.data(), std::min<std::size_t>(size, of.size()));
    size = static_cast<socklen_t>(of.size());
    return 0;
}

name unnamed() {
    const sa_family_t family = AF_UNIX;
    name bytes(sizeof family, '\0');
    std::memcpy(bytes.data(), &family, sizeof family);
    return bytes;
}

/// Bytes in the order in which they came.
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

std::size_t size_of(std::span<const iovec> pieces) noexcept {
    std::size_t size = 0;
    for (const iovec& each : pieces)
        size += each.iov_len;
    return size;
}

/// The places of a message, as far as they hold `most` bytes: calls `with` for each.
template <class With>
void for_each_piece(std::span<const iovec> pieces, std::size_t most, With with) {
    for (const iovec& each : pieces) {
        if (most == 0) return;
        const std::size_t count = std::min(each.iov_len, most);
        with(static_cast<std::byte*>(each.iov_base), count);
        most -= count;
    }
}

std::span<const iovec> pieces_of(const msghdr& message) noexcept {
    return {message.msg_iov, message.msg_iovlen};
}

template <class Value>
const Value* control_value(const msghdr& message, int level, int type) noexcept {
    auto& changeable = const_cast<msghdr&>(message); // what CMSG_NXTHDR wants
    for (cmsghdr* each = CMSG_FIRSTHDR(&changeable); each != nullptr;
         each = CMSG_NXTHDR(&changeable, each)) {
        if (each->cmsg_level == level && each->cmsg_type == type) {
            return reinterpret_cast<const Value*>(CMSG_DATA(each));
        }
    }
    return nullptr;
}

} // namespace

// --- clock and conditions
// --------------------------------------------------------------------------------------

simulated_clock::simulated_clock() noexcept {
    now_ = clock::time_point{first_hour};
    moved_by_poll_ = true;
}

nanoseconds simulated_clock::elapsed() const noexcept {
    return now_.time_since_epoch() - first_hour;
}

void simulated_clock::advance_to(nanoseconds moment) noexcept {
    now_ = std::max(now_, clock::time_point{first_hour + moment});
}

conditions conditions::drawn_from(random_source& source) noexcept {
    conditions like;
    like.shortest_latency = source.between(0us, 100us);
    like.longest_latency =
        like.shortest_latency + source.between(0us, source.chance(300) ? 100'000us : 300us);
    constexpr std::array<std::size_t, 5> rooms{1, 100, 4096, 65536, 262144};
    like.send_room = rooms[source.below(rooms.size())] + source.below(1000);
    like.receive_room = rooms[source.below(rooms.size())] + source.below(1000);
    like.slowness = source.chance(500) ? source.between(1us, 300us) : 0us;
    for (unsigned* each : {&like.cut, &like.not_yet, &like.interrupted, &like.groundless,
                           &like.postponed, &like.shortage}) {
        *each = source.chance(500) ? static_cast<unsigned>(source.below(400)) : 0;
    }
    like.lost = source.chance(300) ? static_cast<unsigned>(source.below(300)) : 0;
    like.doubled = source.chance(300) ? static_cast<unsigned>(source.below(200)) : 0;
    like.immediate = source.chance(300) ? static_cast<unsigned>(source.below(1000)) : 0;
    return like;
}

// --- inside
// --------------------------------------------------------------------------------------

enum class network::step : std::uint8_t {
    deliver, // bytes or the end of a stream reach the other side
    reset,   // and here a reset
    knock,   // a SYN; `detail` counts them
    answer,  // the SYN of the other side
    refuse,  // nobody is there
    arrive,  // a datagram, the flight `detail`
    tell,    // it is worth another try
};

struct network::event {
    nanoseconds at;
    std::uint32_t order; // among those of the same time
    std::uint64_t sequence;
    step what;
    id about;
    std::uint32_t detail;

    // A heap has its greatest first.
    friend bool operator<(const event& left, const event& right) noexcept {
        return std::tie(left.at, left.order, left.sequence) >
               std::tie(right.at, right.order, right.sequence);
    }
};

/// One socket. Goes on after close() as long as the network works for it.
struct network::node {
    id number;
    int fd = -1; // while its owner has it
    int domain;
    int type;
    name local;
    name remote;

    // A stream.
    bool connecting = false;
    bool connected = false;
    bool dead = false; // reset, or both sides let go
    int error = 0;     // SO_ERROR
    id peer = 0;
    byte_queue received;
    byte_queue sent; // and not received
    std::size_t receive_room = 0;
    std::size_t send_room = 0;
    bool no_more = false; // nothing is sent after what is in `sent`
    bool end_sent = false;
    bool end_received = false;
    bool reads_end = false; // shutdown(2) of reading
    bool delivering = false;
    bool wants_room = false;
    bool aborts = false; // SO_LINGER of 0
    bool gone = false;   // closed: nobody will read

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

network::network(std::uint64_t seed, const conditions& like, simulated_clock& time, event_log& log)
    : random_{seed}
    , like_{like}
    , time_{time}
    , log_{log}
    , null_{::open("/dev/null", O_RDWR | O_CLOEXEC)} {
    nodes_.emplace_back();
}

network::~network() {
    for (const auto& each : nodes_) {
        if (each && each->fd >= 0) ::close(each->fd);
    }
}

void network::be_kind() noexcept {
    conditions kind;
    kind.shortest_latency = like_.shortest_latency;
    kind.longest_latency = like_.longest_latency;
    kind.send_room = like_.send_room;
    kind.receive_room = like_.receive_room;
    like_ = kind;
}

network::node& network::make(int domain, int type) {
    auto made = std::make_unique<node>();
    made->number = static_cast<id>(nodes_.size());
    made->domain = domain;
    made->type = type;
    made->receive_room = std::max<std::size_t>(like_.receive_room, 1);
    made->send_room = std::max<std::size_t>(like_.send_room, 1);
    if (domain == AF_UNIX) made->local = unnamed();
    nodes_.push_back(std::move(made));
    return *nodes_.back();
}

int network::give_descriptor(node& to) {
    const int fd = ::fcntl(null_.get(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return -errno;
    const auto at = static_cast<std::size_t>(fd);
    if (at >= by_descriptor_.size()) by_descriptor_.resize(at + 1);
    by_descriptor_[at] = &to;
    to.fd = fd;
    ++open_;
    return fd;
}

nanoseconds network::latency() noexcept {
    return random_.between(like_.shortest_latency, like_.longest_latency);
}

void network::note(const node& about, std::string_view what, std::int64_t count) {
    log_.note(now(), about.number, what, count);
}

void network::schedule(nanoseconds at, step what, id about, std::uint32_t detail) {
    events_.push_back(
        {at, static_cast<std::uint32_t>(random_.next()), ++sequence_, what, about, detail});
    std::push_heap(events_.begin(), events_.end());
}

void network::advance_to(nanoseconds moment) {
    while (!events_.empty() && events_.front().at <= moment) {
        std::pop_heap(events_.begin(), events_.end());
        const event next = events_.back();
        events_.pop_back();
        time_.advance_to(next.at);
        happen(next);
    }
    time_.advance_to(moment);
}

bool network::parted(const name& one, const name& other) const {
    if (parted_.empty() || family_of(one) == AF_UNIX) return false;
    return parted_.contains(std::minmax(host_of(one), host_of(other)));
}

void network::part(std::string_view one, std::string_view other) {
    const name first = host_by_text(one);
    const name second = host_by_text(other);
    parted_.insert(std::minmax(first, second));
    log_.note(now(), 0, "part", static_cast<std::int64_t>(parted_.size()));
}

void network::heal() {
    parted_.clear();
    log_.note(now(), 0, "heal", static_cast<std::int64_t>(held_.size()));
    for (const event& each : std::exchange(held_, {}))
        schedule(now() + latency(), each.what, each.about, each.detail);
}

void network::happen(const event& what) {
    if (what.what == step::arrive) return arrive(what.detail);
    node& about = *nodes_[what.about];
    const bool travels = what.what == step::deliver || what.what == step::reset;
    if (travels && parted(about.local, about.remote)) {
        held_.push_back(what);
        return;
    }
    switch (what.what) {
    case step::deliver:
        about.delivering = false;
        return deliver(about);
    case step::reset:
        return reset(about, about.end_received ? EPIPE : ECONNRESET);
    case step::knock:
        return knock(about, what.detail);
    case step::answer:
        return established(about);
    case step::refuse:
        if (about.is_stream()) return reset(about, ECONNREFUSED);
        about.error = ECONNREFUSED; // ICMP, for a datagram
        return tell(about);
    case step::tell:
        return tell(about);
    case step::arrive:
        return;
    }
}

/// Bytes that a send would find room for. A local stream has one queue, which is its reader's.
std::size_t network::room_to_send(const node& from) const noexcept {
    if (from.is_local()) return nodes_[from.peer]->room_to_receive();
    return from.send_room - std::min(from.send_room, from.sent.size());
}

std::size_t network::room_in_all(const node& from) const noexcept {
    return from.is_local() ? nodes_[from.peer]->receive_room : from.send_room;
}

// --- readiness
// --------------------------------------------------------------------------------------

unsigned network::readiness(const node& of) const noexcept {
    unsigned is = 0;
    if (of.listening) return of.backlog.empty() ? 0U : unsigned{EPOLLIN};
    if (!of.is_stream()) {
        if (!of.arrived.empty()) is |= EPOLLIN;
        if (of.error != 0) is |= EPOLLERR | EPOLLIN;
        const bool full =
            of.is_local() && of.peer != 0 && nodes_[of.peer]->arrived.size() >= most_datagrams;
        if (!full) is |= EPOLLOUT;
        return is;
    }
    if (of.error != 0) is |= EPOLLERR | EPOLLIN | EPOLLOUT;
    if (of.dead) is |= EPOLLHUP | EPOLLRDHUP | EPOLLIN | EPOLLOUT;
    if (of.connecting) return is;
    if (!of.connected) return is | EPOLLOUT | EPOLLHUP;
    if (!of.received.empty()) is |= EPOLLIN;
    if (of.end_received || of.reads_end) is |= EPOLLIN | EPOLLRDHUP;
    if (of.no_more || room_to_send(of) * 3 >= room_in_all(of)) is |= EPOLLOUT;
    if (of.no_more && (of.end_received || of.reads_end)) is |= EPOLLHUP;
    return is;
}

unsigned network::readiness(int fd) const noexcept {
    return readiness(of(fd));
}

std::size_t network::waiting_at(int fd) const noexcept {
    const node& at = of(fd);
    return at.received.size() + at.arrived.size() + at.backlog.size();
}

void network::tell(node& at) {
    for (registration& each : at.registrations) {
        if (each.resting || each.queued) continue;
        each.queued = true;
        epolls_.at(each.epoll)->ready.push_back(at.number);
    }
}

int network::epoll_control(int epoll, int action, int fd, epoll_event* event) {
    auto& set = epolls_[epoll];
    if (!set) set = std::make_unique<epoll_set>();
    if (!owns(fd)) {
        const int outcome = ::epoll_ctl(epoll, action, fd, event);
        if (outcome < 0) return -errno;
        if (action == EPOLL_CTL_DEL) {
            set->others.erase(fd);
        } else {
            set->others[fd] = event->data.u64;
        }
        return 0;
    }
    node& at = of(fd);
    const auto known = std::ranges::find(at.registrations, epoll, &registration::epoll);
    if (action == EPOLL_CTL_DEL) {
        if (known == at.registrations.end()) return -ENOENT;
        at.registrations.erase(known);
        return 0;
    }
    if (action == EPOLL_CTL_ADD && known != at.registrations.end()) return -EEXIST;
    if (action == EPOLL_CTL_MOD && known == at.registrations.end()) return -ENOENT;
    registration& mine = known == at.registrations.end()
                             ? at.registrations.emplace_back(registration{.epoll = epoll})
                             : *known;
    mine.interest = event->events | EPOLLERR | EPOLLHUP;
    mine.data = event->data.u64;
    mine.resting = false;
    if ((readiness(at) & mine.interest) != 0) tell(at);
    return 0;
}

/// What is ready in `set`, in any order.
int network::collect(epoll_set& set, std::span<epoll_event> events) {
    const int epoll = std::ranges::find_if(epolls_, [&](const auto& each) {
                          return each.second.get() == &set;
                      })->first;
    std::vector<id> ready = std::exchange(set.ready, {});
    random_.shuffle(std::span{ready});
    std::size_t count = 0;
    for (const id each : ready) {
        node& at = *nodes_[each];
        const auto mine = std::ranges::find(at.registrations, epoll, &registration::epoll);
        if (mine == at.registrations.end() || !mine->queued) continue;
        if (count == events.size() || random_.chance(like_.postponed)) {
            set.ready.push_back(each);
            continue;
        }
        mine->queued = false;
        unsigned is = readiness(at);
        // Who looks and sees no room is told of it later: tcp_poll() and unix_write_space().
        if (at.is_stream() && (is & EPOLLOUT) == 0) at.wants_room = true;
        if (random_.chance(like_.groundless)) is |= EPOLLIN | EPOLLOUT;
        is &= mine->interest;
        if (is == 0) continue;
        events[count].events = is;
        events[count].data.u64 = mine->data;
        ++count;
        note(at, "ready", is);
        if ((mine->interest & EPOLLONESHOT) != 0) {
            mine->resting = true;
        } else if ((mine->interest & EPOLLET) == 0) {
            mine->queued = true;
            set.ready.push_back(each);
        }
    }
    for (const auto& [fd, data] : set.others) {
        const auto inner = epolls_.find(fd);
        if (inner == epolls_.end() || inner->second->ready.empty() || count == events.size())
            continue;
        events[count].events = EPOLLIN;
        events[count].data.u64 = data;
        ++count;
    }
    return static_cast<int>(count);
}

void network::give_up() {
    if (std::exchange(stuck_, true)) return;
    if (on_stuck != nullptr) on_stuck(on_stuck_argument);
}

int network::epoll_wait(int epoll, std::span<epoll_event> events,
                        std::optional<nanoseconds> timeout) {
    auto& known = epolls_[epoll];
    if (!known) known = std::make_unique<epoll_set>();
    epoll_set& set = *known;
    const auto late = [&] {
        return like_.slowness == 0ns ? 0ns : random_.between(0ns, like_.slowness);
    };
    advance_to(now() + late());
    int count = collect(set, events);
    if (timeout == 0ns || count != 0) return count;

    const auto limit = timeout ? std::optional{now() + *timeout} : std::nullopt;
    for (;;) {
        if (log_.events() > most_events) {
            give_up();
            return 0;
        }
        // Files that are not simulated: whoever wakes the loop writes to one.
        const int real = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 0);
        if (real != 0) return real < 0 ? -errno : real;
        const bool put_off = !set.ready.empty();
        const bool comes = !events_.empty();
        if (!put_off && !comes && !limit) {
            give_up();
            return ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 0);
        }
        bool over = false;
        if (!put_off) {
            const nanoseconds next = comes ? events_.front().at : *limit;
            over = limit && *limit <= next;
            advance_to((over ? *limit : next) + late());
        }
        count = collect(set, events);
        if (count != 0 || over) return count;
    }
}

// --- streams
// --------------------------------------------------------------------------------------

void network::want_delivery(node& from) {
    if (from.delivering || from.peer == 0 || from.end_sent) return;
    if (from.sent.empty() && !from.no_more) return;
    if (from.is_local()) return deliver(from);
    from.delivering = true;
    schedule(now() + latency(), step::deliver, from.number);
}

void network::deliver(node& from) {
    if (from.dead) return;
    node& to = *nodes_[from.peer];
    if (to.connecting) established(to);
    if (to.gone && !from.sent.empty()) {
        reset(to, EPIPE); // what it had still to send is lost
        return reset(from, from.is_local() || from.end_received ? EPIPE : ECONNRESET);
    }
    std::size_t count = std::min(from.sent.size(), to.room_to_receive());
    if (count > 1 && !from.is_local() && random_.chance(like_.cut)) {
        count = random_.size_up_to(count);
    }
    if (count != 0) {
        to.received.add(from.sent.data(), count);
        from.sent.drop(count);
        note(from, "deliver", static_cast<std::int64_t>(count));
        tell(to);
        if (from.wants_room && (readiness(from) & EPOLLOUT) != 0) {
            from.wants_room = false;
            tell(from);
        }
    }
    if (!from.sent.empty()) {
        if (to.room_to_receive() != 0) {
            from.delivering = true;
            schedule(now() + (from.is_local() ? 0ns : latency()), step::deliver, from.number);
        }
    } else if (from.no_more && !from.end_sent) {
        if (count != 0 && random_.chance(500)) {
            from.delivering = true;
            schedule(now() + latency(), step::deliver, from.number);
        } else {
            finish_sending(from);
        }
    }
}

void network::finish_sending(node& from) {
    node& to = *nodes_[from.peer];
    from.end_sent = true;
    to.end_received = true;
    note(from, "end", 0);
    tell(to);
    tell(from);
}

/// `reader` took something: its window opens.
void network::make_way(node& reader) {
    if (reader.peer == 0) return;
    node& writer = *nodes_[reader.peer];
    want_delivery(writer);
    if (writer.is_local() && writer.wants_room && (readiness(writer) & EPOLLOUT) != 0) {
        writer.wants_room = false;
        tell(writer);
    }
}

void network::reset(node& at, int error) {
    if (at.dead) return;
    at.dead = true;
    at.connecting = false;
    at.error = error;
    at.sent.clear();
    note(at, "reset", error);
    tell(at);
}

void network::send_reset(node& to) {
    if (to.is_local()) return reset(to, ECONNRESET);
    schedule(now() + latency(), step::reset, to.number);
}

void network::abort(int fd) {
    node& one = of(fd);
    if (one.peer != 0) send_reset(*nodes_[one.peer]);
    send_reset(one);
}

void network::knock(node& client, unsigned attempt) {
    if (!client.connecting || client.fd < 0) return;
    node* const at = listener_at(client.remote);
    const bool lost = parted(client.local, client.remote) ||
                      (at != nullptr && at->backlog.size() > at->backlog_limit);
    if (lost) {
        if (attempt == most_knocks) return reset(client, ETIMEDOUT);
        return schedule(now() + 1s * (1 << attempt), step::knock, client.number, attempt + 1);
    }
    if (at == nullptr) return schedule(now() + latency(), step::refuse, client.number);
    node& server = make(client.domain, SOCK_STREAM);
    node& listener = *listener_at(client.remote); // make() moved nothing but the table
    server.local = client.remote;
    server.remote = client.local;
    server.peer = client.number;
    server.connected = true;
    server.receive_room = listener.receive_room;
    server.send_room = listener.send_room;
    client.peer = server.number;
    listener.backlog.push_back(server.number);
    note(listener, "knock", client.number);
    tell(listener);
    schedule(now() + latency(), step::answer, client.number);
}

void network::established(node& client) {
    if (!client.connecting) return;
    client.connecting = false;
    client.connected = true;
    note(client, "connected", 0);
    tell(client);
}

network::node* network::listener_at(const name& at) {
    auto found = listeners_.find(at);
    if (found == listeners_.end() && family_of(at) != AF_UNIX) {
        found = listeners_.find(any_of_family(at));
    }
    if (found == listeners_.end()) return nullptr;
    // Several by SO_REUSEPORT.
    return nodes_[found
                      ->second[found->second.size() == 1 ? 0 : random_.below(found->second.size())]]
        .get();
}

network::node* network::bound_at(int type, const name& at) {
    auto found = bound_.find({type, at});
    if (found == bound_.end() && family_of(at) != AF_UNIX) {
        found = bound_.find({type, any_of_family(at)});
    }
    return found == bound_.end() ? nullptr : nodes_[found->second].get();
}

network::name network::any_port(const name& host) {
    next_port_ =
        next_port_ == 60999 ? std::uint16_t{32768} : static_cast<std::uint16_t>(next_port_ + 1);
    return with_port(host, next_port_);
}

void network::forget_name(node& of) {
    if (const auto at = bound_.find({of.type, of.local}); at != bound_.end()) {
        if (at->second == of.number) bound_.erase(at);
    }
    if (const auto at = listeners_.find(of.local); at != listeners_.end()) {
        std::erase(at->second, of.number);
        if (at->second.empty()) listeners_.erase(at);
    }
}

// --- system calls
// --------------------------------------------------------------------------------------

bool network::interrupts() noexcept {
    return random_.chance(like_.interrupted);
}

int network::socket(int domain, int type) {
    return give_descriptor(make(domain, type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)));
}

int network::socketpair(int type, int (&fds)[2]) {
    const int plain = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
    const id first = make(AF_UNIX, plain).number;
    const id second = make(AF_UNIX, plain).number;
    nodes_[first]->peer = second;
    nodes_[second]->peer = first;
    for (const id each : {first, second}) {
        nodes_[each]->connected = true;
        nodes_[each]->remote = unnamed();
    }
    fds[0] = give_descriptor(*nodes_[first]);
    fds[1] = give_descriptor(*nodes_[second]);
    return std::min({fds[0], fds[1], 0});
}

int network::bind(int fd, const sockaddr* at, socklen_t size) {
    node& of_socket = of(fd);
    name wanted = name_of(at, size);
    if (family_of(wanted) != of_socket.domain) return -EINVAL;
    if (of_socket.is_local()) {
        if (wanted.size() == sizeof(sa_family_t)) { // autobind (unix(7))
            std::array<char, 8> text{};
            std::snprintf(text.data(), text.size(), "%05x", next_name_++);
            wanted += '\0';
            wanted += text.data();
        }
    } else if (port_of(wanted) == 0) {
        wanted = any_port(wanted);
    }
    const auto taken = bound_.find({of_socket.type, wanted});
    if (taken != bound_.end()) {
        const bool shared = of_socket.options.contains({SOL_SOCKET, SO_REUSEPORT});
        if (of_socket.is_local() || !of_socket.is_stream() || !shared) return -EADDRINUSE;
    }
    bound_[{of_socket.type, wanted}] = of_socket.number;
    of_socket.local = wanted;
    note(of_socket, "bind", of_socket.is_local() ? 0 : port_of(wanted));
    return 0;
}

int network::listen(int fd, int backlog) {
    node& at = of(fd);
    at.listening = true;
    at.backlog_limit = static_cast<std::size_t>(backlog);
    listeners_[at.local].push_back(at.number);
    note(at, "listen", backlog);
    return 0;
}

int network::accept(int fd) {
    if (!of(fd).listening) return -EINVAL;
    if (of(fd).backlog.empty()) return -EAGAIN;
    if (random_.chance(like_.not_yet)) {
        schedule(now() + latency(), step::tell, of(fd).number);
        return -EAGAIN;
    }
    if (random_.chance(like_.shortage)) {
        note(of(fd), "shortage", 0);
        return -EMFILE;
    }
    node& listener = of(fd);
    node& next = *nodes_[listener.backlog.front()];
    listener.backlog.pop_front();
    note(listener, "accept", next.number);
    if (next.dead && random_.chance(500)) return -ECONNABORTED;
    return give_descriptor(next);
}

int network::connect(int fd, const sockaddr* to, socklen_t size) {
    const name wanted = name_of(to, size);
    node& from = of(fd);
    if (family_of(wanted) == AF_UNSPEC) {
        if (from.is_stream() && from.peer != 0 && !from.dead) send_reset(*nodes_[from.peer]);
        reset(from, 0);
        from.connected = false;
        return 0;
    }
    if (family_of(wanted) != from.domain) return -EINVAL;
    if (!from.is_stream()) {
        if (from.is_local()) {
            const auto found = bound_.find({SOCK_DGRAM, wanted});
            if (found == bound_.end()) return -ENOENT;
            from.peer = found->second;
        } else if (from.local.empty()) {
            from.local = any_port(own_host(wanted));
            bound_[{SOCK_DGRAM, from.local}] = from.number;
        }
        from.remote = wanted;
        from.connected = true;
        return 0;
    }
    if (from.connected) return -EISCONN;
    if (from.connecting) return -EALREADY;
    if (from.is_local()) {
        node* const at = listener_at(wanted);
        if (at == nullptr) return bound_.contains({SOCK_STREAM, wanted}) ? -ECONNREFUSED : -ENOENT;
        if (at->backlog.size() > at->backlog_limit || random_.chance(like_.not_yet)) return -EAGAIN;
        node& server = make(AF_UNIX, SOCK_STREAM);
        node& client = of(fd);
        node& listener = *listener_at(wanted);
        server.local = wanted;
        server.remote = client.local;
        server.peer = client.number;
        client.peer = server.number;
        client.remote = wanted;
        server.connected = client.connected = true;
        listener.backlog.push_back(server.number);
        note(client, "connected", server.number);
        tell(listener);
        tell(client);
        return 0;
    }
    if (from.local.empty()) from.local = any_port(own_host(wanted));
    if (is_any(from.local)) from.local = with_port(own_host(wanted), port_of(from.local));
    from.remote = wanted;
    from.connecting = true;
    note(from, "connect", port_of(wanted));
    if (random_.chance(like_.immediate)) {
        knock(from, 0);
        node& again = of(fd);
        if (again.peer != 0) established(again);
        return again.connected ? 0 : -EINPROGRESS;
    }
    schedule(now() + latency(), step::knock, from.number);
    return -EINPROGRESS;
}

int network::shutdown(int fd, int how) {
    node& at = of(fd);
    if (at.listening) {
        forget_name(at);
        at.listening = false;
        tell(at);
        return 0;
    }
    if (!at.connected || at.dead) return -ENOTCONN;
    if (how != SHUT_WR) at.reads_end = true;
    if (how != SHUT_RD && !at.no_more) {
        at.no_more = true;
        note(at, "shutdown", how);
        want_delivery(at);
    }
    tell(at);
    return 0;
}

int network::close(int fd) {
    node& at = of(fd);
    note(at, "close", static_cast<std::int64_t>(at.received.size()));
    if (at.listening || !at.is_stream() || at.peer == 0) forget_name(at);
    at.listening = false;
    for (const id waiting : at.backlog) {
        node& server = *nodes_[waiting];
        if (!server.dead) send_reset(*nodes_[server.peer]);
        server.dead = true;
    }
    at.backlog.clear();
    at.connecting = false;
    at.gone = true;
    if (at.is_stream() && at.peer != 0 && !at.dead) {
        if (at.aborts || !at.received.empty()) {
            at.dead = true;
            at.sent.clear();
            send_reset(*nodes_[at.peer]);
        } else {
            at.no_more = true;
            want_delivery(at);
        }
    }
    at.received.clear();
    at.arrived.clear();
    at.registrations.clear();
    at.fd = -1;
    by_descriptor_[static_cast<std::size_t>(fd)] = nullptr;
    --open_;
    ::close(fd);
    return 0;
}

void network::closed_elsewhere(int fd) {
    epolls_.erase(fd);
}

int network::getsockname(int fd, sockaddr* into, socklen_t& size) {
    node& at = of(fd);
    if (!at.local.empty()) return tell_name(at.local, into, size);
    return tell_name(at.domain == AF_INET6 ? v6(in6addr_any) : v4(INADDR_ANY), into, size);
}

int network::getpeername(int fd, sockaddr* into, socklen_t& size) {
    node& at = of(fd);
    if (!at.connected || at.dead) return -ENOTCONN;
    return tell_name(at.remote, into, size);
}

int network::setsockopt(int fd, int level, int option, const void* value, socklen_t size) {
    node& at = of(fd);
    const auto* const bytes = static_cast<const char*>(value);
    int number = 0;
    std::memcpy(&number, value, std::min<std::size_t>(size, sizeof number));
    if (level == SOL_SOCKET && option == SO_LINGER) {
        linger said{};
        std::memcpy(&said, value, std::min<std::size_t>(size, sizeof said));
        at.aborts = said.l_onoff != 0 && said.l_linger == 0;
    }
    if (level == SOL_SOCKET && option == SO_SNDBUF) {
        at.send_room = static_cast<std::size_t>(std::max(number, 1));
    }
    if (level == SOL_SOCKET && option == SO_RCVBUF) {
        at.receive_room = static_cast<std::size_t>(std::max(number, 1));
    }
    at.options[{level, option}] = {bytes, bytes + size};
    return 0;
}

int network::getsockopt(int fd, int level, int option, void* value, socklen_t& size) {
    node& at = of(fd);
    const auto tell_number = [&](int number) {
        std::memset(value, 0, size);
        std::memcpy(value, &number, std::min<std::size_t>(size, sizeof number));
        return 0;
    };
    if (level == SOL_SOCKET) {
        switch (option) {
        case SO_ERROR:
            return tell_number(at.take_error());
        case SO_TYPE:
            return tell_number(at.type);
        case SO_DOMAIN:
            return tell_number(at.domain);
        case SO_PROTOCOL:
            return tell_number(at.is_local() ? 0 : at.is_stream() ? IPPROTO_TCP : IPPROTO_UDP);
        case SO_ACCEPTCONN:
            return tell_number(at.listening ? 1 : 0);
        case SO_PEERCRED: {
            const ucred self{.pid = ::getpid(), .uid = ::getuid(), .gid = ::getgid()};
            std::memcpy(value, &self, std::min<std::size_t>(size, sizeof self));
            return 0;
        }
        default:
            break;
        }
    }
    const auto known = at.options.find({level, option});
    if (known == at.options.end()) return tell_number(0);
    std::memset(value, 0, size);
    std::memcpy(value, known->second.data(), std::min<std::size_t>(size, known->second.size()));
    return 0;
}

int network::poll(int fd, short events) {
    const unsigned asked = static_cast<unsigned>(events) | POLLERR | POLLHUP;
    return static_cast<int>(readiness(of(fd)) & asked);
}

namespace {

name name_of_path(const char* path) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path, sizeof at.sun_path - 1);
    return name_of(reinterpret_cast<const sockaddr*>(&at), sizeof at);
}

} // namespace

bool network::has_path(const char* path) const {
    const name wanted = name_of_path(path);
    return bound_.contains({SOCK_STREAM, wanted}) || bound_.contains({SOCK_DGRAM, wanted});
}

int network::unlink(const char* path) {
    const name wanted = name_of_path(path);
    std::size_t gone = listeners_.erase(wanted);
    gone += bound_.erase({SOCK_STREAM, wanted});
    gone += bound_.erase({SOCK_DGRAM, wanted});
    return gone == 0 ? -ENOENT : 0;
}

ssize_t network::take_stream(node& from, std::span<const iovec> pieces, std::size_t most) {
    if (from.error != 0) return -from.take_error();
    if (from.no_more || from.dead) return -EPIPE;
    if (from.connecting) return -EAGAIN;
    if (!from.connected) return from.is_local() ? -ENOTCONN : -EPIPE;
    if (from.is_local() && nodes_[from.peer]->gone) return -EPIPE;
    std::size_t count = std::min(most, room_to_send(from));
    if (most != 0 && (count == 0 || random_.chance(like_.not_yet))) {
        if (count != 0) schedule(now() + latency(), step::tell, from.number);
        from.wants_room = true;
        return -EAGAIN;
    }
    if (count > 1 && random_.chance(like_.cut)) count = random_.size_up_to(count);
    for_each_piece(pieces, count,
                   [&](const std::byte* bytes, std::size_t size) { from.sent.add(bytes, size); });
    note(from, "send", static_cast<std::int64_t>(count));
    want_delivery(from);
    return static_cast<ssize_t>(count);
}

ssize_t network::give_stream(node& to, std::span<const iovec> places, int flags) {
    const std::size_t most = size_of(places);
    if (to.received.empty()) {
        if (to.error != 0) return -to.take_error();
        if (to.end_received || to.reads_end || to.dead) {
            note(to, "receive end", 0);
            return 0;
        }
        if (!to.connected) return to.connecting ? -EAGAIN : -ENOTCONN;
        return -EAGAIN;
    }
    if ((flags & MSG_PEEK) == 0 && random_.chance(like_.not_yet)) {
        schedule(now() + latency(), step::tell, to.number);
        return -EAGAIN;
    }
    std::size_t count = std::min(most, to.received.size());
    if (count > 1 && random_.chance(like_.cut)) count = random_.size_up_to(count);
    std::size_t at = 0;
    for_each_piece(places, count, [&](std::byte* into, std::size_t size) {
        std::memcpy(into, to.received.data() + at, size);
        at += size;
    });
    if ((flags & MSG_PEEK) != 0) return static_cast<ssize_t>(count);
    to.received.drop(count);
    note(to, "receive", static_cast<std::int64_t>(count));
    // Fewer bytes than asked for: what is left shall have come after this call.
    if (count < most && !to.received.empty()) tell(to);
    make_way(to);
    return static_cast<ssize_t>(count);
}

void network::put(node& into, datagram&& what) {
    if (into.fd < 0) return;
    note(into, "arrive", static_cast<std::int64_t>(what.bytes.size()));
    into.arrived.push_back(std::move(what));
    tell(into);
}

void network::arrive(std::uint32_t flight) {
    auto [to, what] = std::move(flights_[flight]);
    free_flights_.push_back(flight);
    if (nodes_[to]->arrived.size() >= 1000) return;
    put(*nodes_[to], std::move(what));
}

ssize_t network::send_datagram(node& from, const name& to, std::vector<std::byte>&& bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (from.error != 0) return -from.take_error();
    if (random_.chance(like_.not_yet)) {
        schedule(now() + latency(), step::tell, from.number);
        return -EAGAIN;
    }
    if (from.is_local()) {
        node* const at = to.empty() ? (from.peer == 0 ? nullptr : nodes_[from.peer].get())
                                    : bound_at(SOCK_DGRAM, to);
        if (at == nullptr) return to.empty() ? -ENOTCONN : -ENOENT;
        if (at->gone) return -ECONNREFUSED;
        if (at->arrived.size() >= most_datagrams) return -EAGAIN;
        const bool named = from.local.size() > sizeof(sa_family_t);
        put(*at, {named ? from.local : name{}, std::move(bytes)});
        return size;
    }
    const name& target = to.empty() ? from.remote : to;
    if (target.empty()) return -EDESTADDRREQ;
    if (size > 65'507) return -EMSGSIZE;
    if (from.local.empty()) {
        from.local = any_port(own_host(target));
        bound_[{SOCK_DGRAM, from.local}] = from.number;
    }
    const name origin =
        is_any(from.local) ? with_port(own_host(target), port_of(from.local)) : from.local;
    note(from, "send", size);
    if (parted(origin, target) || random_.chance(like_.lost)) {
        note(from, "lost", size);
        return size;
    }
    node* const at = bound_at(SOCK_DGRAM, target);
    if (at == nullptr || at->fd < 0) {
        if (from.connected) schedule(now() + latency(), step::refuse, from.number);
        return size;
    }
    if (at->connected && at->remote != origin) return size;
    for (int copies = random_.chance(like_.doubled) ? 2 : 1; copies > 0; --copies) {
        std::uint32_t flight = 0;
        if (free_flights_.empty()) {
            flight = static_cast<std::uint32_t>(flights_.size());
            flights_.emplace_back();
        } else {
            flight = free_flights_.back();
            free_flights_.pop_back();
        }
        flights_[flight] = {at->number, {origin, bytes}};
        schedule(now() + latency(), step::arrive, at->number, flight);
    }
    return size;
}

ssize_t network::give_datagram(node& to, msghdr& message, int flags) {
    if ((flags & MSG_ERRQUEUE) != 0) return -EAGAIN;
    if (to.error != 0) return -to.take_error();
    if (to.arrived.empty()) return to.is_local() && to.reads_end ? 0 : -EAGAIN;
    if (random_.chance(like_.not_yet)) {
        schedule(now() + latency(), step::tell, to.number);
        return -EAGAIN;
    }
    const datagram& next = to.arrived.front();
    const std::size_t room = size_of(pieces_of(message));
    const std::size_t count = std::min(room, next.bytes.size());
    std::size_t at = 0;
    for_each_piece(pieces_of(message), count, [&](std::byte* into, std::size_t size) {
        std::memcpy(into, next.bytes.data() + at, size);
        at += size;
    });
    message.msg_flags = count < next.bytes.size() ? MSG_TRUNC : 0;
    message.msg_controllen = 0;
    if (message.msg_name != nullptr) {
        static_cast<void>(
            tell_name(next.from, static_cast<sockaddr*>(message.msg_name), message.msg_namelen));
    }
    const auto length = static_cast<ssize_t>((flags & MSG_TRUNC) != 0 ? next.bytes.size() : count);
    if ((flags & MSG_PEEK) != 0) return length;
    note(to, "receive", length);
    to.arrived.pop_front();
    // Those who found the queue full.
    for (const auto& each : nodes_) {
        if (each && to.is_local() && each->peer == to.number && each->fd >= 0) tell(*each);
    }
    return length;
}

ssize_t network::recv(int fd, void* data, std::size_t size, int flags) {
    iovec place{.iov_base = data, .iov_len = size};
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    return recvmsg(fd, message, flags);
}

ssize_t network::send(int fd, const void* data, std::size_t size, int flags) {
    iovec piece{.iov_base = const_cast<void*>(data), .iov_len = size};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    return sendmsg(fd, message, flags);
}

ssize_t network::recvmsg(int fd, msghdr& message, int flags) {
    node& at = of(fd);
    if (!at.is_stream()) return give_datagram(at, message, flags);
    message.msg_flags = 0;
    message.msg_controllen = 0;
    return give_stream(at, pieces_of(message), flags);
}

ssize_t network::sendmsg(int fd, const msghdr& message, int flags) {
    static_cast<void>(flags);
    node& from = of(fd);
    const auto pieces = pieces_of(message);
    if (control_value<int>(message, SOL_SOCKET, SCM_RIGHTS) != nullptr) return -EINVAL;
    if (from.is_stream()) return take_stream(from, pieces, size_of(pieces));

    std::vector<std::byte> bytes;
    for_each_piece(pieces, size_of(pieces), [&](const std::byte* from_here, std::size_t size) {
        bytes.insert(bytes.end(), from_here, from_here + size);
    });
    const name to =
        message.msg_name == nullptr
            ? name{}
            : name_of(static_cast<const sockaddr*>(message.msg_name), message.msg_namelen);
    const auto* const segment = control_value<std::uint16_t>(message, IPPROTO_UDP, UDP_SEGMENT);
    if (segment == nullptr) return send_datagram(from, to, std::move(bytes));
    const std::size_t whole = bytes.size();
    const std::size_t length = *segment;
    for (std::size_t at = 0; at < whole; at += length) {
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at + length, whole));
        const ssize_t outcome = send_datagram(of(fd), to, {begin, end});
        if (outcome < 0) return at == 0 ? outcome : static_cast<ssize_t>(at);
    }
    return static_cast<ssize_t>(whole);
}

ssize_t network::sendfile(int to, int from, off_t offset, std::size_t size) {
    std::vector<std::byte> bytes(std::min(size, room_to_send(of(to)) + 1));
    const ssize_t count = ::pread(from, bytes.data(), bytes.size(), offset);
    if (count < 0) return -errno;
    if (count == 0) return 0;
    return send(to, bytes.data(), static_cast<std::size_t>(count), 0);
}

} // namespace simplenet::inline v0::simulation
