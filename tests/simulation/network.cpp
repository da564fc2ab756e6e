#include "simulation/network.hpp"
#include "simulation/network_parts.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace simplenet::v0::simulation {

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

} // namespace simplenet::v0::simulation
