// Part of a simulated network: readiness, and the waits for it.

#include "simulation/network_parts.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

namespace simplenet::v0::simulation {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t most_events = 2'000'000;

} // namespace

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

/// The result of a poll(2), or of an epoll set. A caller that finds no room is notified of room
/// later: tcp_poll() and unix_write_space().
unsigned network::look(node& at) const noexcept {
    const unsigned is = readiness(at);
    if (at.is_stream() && (is & EPOLLOUT) == 0) at.wants_room = true;
    return is;
}

unsigned network::readiness(int fd) const noexcept {
    return readiness(of(fd));
}

std::size_t network::unsent_at(int fd) const noexcept {
    return of(fd).sent.size();
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
    if ((look(at) & mine.interest) != 0) tell(at);
    return 0;
}

/// Returns the ready sockets in `set`, in any order.
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
        unsigned is = look(at);
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

void network::give_up(std::string_view why) {
    if (std::exchange(stuck_, true)) return;
    if (on_stuck != nullptr) on_stuck(on_stuck_argument, why);
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
            give_up("goes on and on");
            return 0;
        }
        // Files that are not simulated: other threads wake the loop by writing to one.
        const int real = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 0);
        if (real != 0) return real < 0 ? -errno : real;
        const bool put_off = !set.ready.empty();
        const bool comes = !events_.empty();
        if (!put_off && !comes && !limit) {
            give_up("waits for something that never comes");
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

} // namespace simplenet::v0::simulation
