#include "simulation/perturbed_kernel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <utility>

#include <sys/socket.h>

namespace simplenet::v0::simulation {

namespace {

using detail::sys::call;
using detail::sys::pending_call;

// Per thousand.
constexpr unsigned interrupted = 50;
constexpr unsigned no_room = 100;
constexpr unsigned cut_short = 200;
constexpr unsigned late = 300;

/// Bytes. Tests send each other words, and expect them to arrive in one piece.
constexpr std::size_t whole_message = 64;

constexpr timespec at_once{};

} // namespace

long perturbed_kernel::on_call(pending_call& asked) noexcept {
    switch (asked.which()) {
    case call::epoll_ctl:
        return control(asked);
    case call::epoll_wait:
    case call::epoll_pwait2:
        return wait(asked);
    case call::close:
        forget(asked.descriptor());
        return asked.make();
    case call::recv:
    case call::recvmsg:
    case call::accept:
        return transfer(asked, EPOLLIN);
    case call::send:
    case call::sendmsg:
        return transfer(asked, EPOLLOUT);
    default:
        return asked.make();
    }
}

long perturbed_kernel::control(pending_call& asked) {
    const int epoll = asked.descriptor();
    const int action = asked.argument<int>(1);
    const int fd = asked.argument<int>(2);
    const auto* const event = asked.argument<const epoll_event*>(3);
    const long outcome = asked.make();
    if (outcome < 0) return outcome;
    const std::scoped_lock locked{lock_};
    for (auto [at, end] = registered_.equal_range(fd); at != end;) {
        if (at->second.epoll == epoll) {
            std::erase_if(late_, [&](const late_event& each) {
                return each.epoll == epoll && each.event.data.u64 == at->second.data;
            });
            at = registered_.erase(at);
        } else {
            ++at;
        }
    }
    if (action == EPOLL_CTL_DEL) return outcome;
    int type = 0;
    socklen_t size = sizeof type;
    const bool is_stream =
        ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
    registered_.insert({fd, {epoll, event->events, event->data.u64, is_stream}});
    return outcome;
}

void perturbed_kernel::forget(int fd) {
    const std::scoped_lock locked{lock_};
    for (auto [at, end] = registered_.equal_range(fd); at != end; ++at) {
        std::erase_if(late_, [&](const late_event& each) {
            return each.epoll == at->second.epoll && each.event.data.u64 == at->second.data;
        });
    }
    registered_.erase(fd);
    // The descriptor may be an epoll itself.
    std::erase_if(registered_, [&](const auto& each) { return each.second.epoll == fd; });
    std::erase_if(late_, [&](const late_event& each) { return each.epoll == fd; });
}

bool perturbed_kernel::may_be_late(int epoll, const epoll_event& event) const {
    // The kernel withdraws a one-shot event that no longer applies, so it must not be late.
    return std::ranges::any_of(registered_, [&](const auto& each) {
        const registration& at = each.second;
        return at.epoll == epoll && at.data == event.data.u64 && (at.interest & EPOLLET) != 0 &&
               at.is_stream;
    });
}

long perturbed_kernel::wait(pending_call& asked) {
    const int epoll = asked.descriptor();
    const std::span events{asked.argument<epoll_event*>(1), asked.argument<std::size_t>(2)};
    const bool waits = asked.which() == call::epoll_wait ? asked.argument<int>(3) != 0 : true;
    std::vector<epoll_event> all;
    {
        const std::scoped_lock locked{lock_};
        std::vector<late_event> others;
        for (const late_event& each : late_) {
            const bool fits = all.size() != events.size() / 2;
            if (each.epoll == epoll && fits) {
                all.push_back(each.event);
            } else {
                others.push_back(each);
            }
        }
        late_ = std::move(others);
    }
    const std::size_t put_off = all.size();
    asked.replace(2, static_cast<int>(events.size() - put_off));
    if (put_off != 0) {
        if (asked.which() == call::epoll_wait) {
            asked.replace(3, 0);
        } else {
            asked.replace(3, &at_once);
        }
    }
    const long outcome = asked.make();
    if (outcome < 0 && put_off == 0) return outcome;
    for (long at = 0; at < outcome; ++at)
        all.push_back(events[static_cast<std::size_t>(at)]);

    const std::scoped_lock locked{lock_};
    random_.shuffle(std::span{all});
    std::size_t count = 0;
    for (const epoll_event& each : all) {
        if (may_be_late(epoll, each) && random_.chance(late)) {
            late_.push_back({epoll, each});
        } else {
            events[count++] = each;
        }
    }
    // A wait must not end without an event.
    if (count == 0 && waits && !all.empty()) {
        for (const epoll_event& each : all)
            events[count++] = each;
        late_.resize(late_.size() - count);
    }
    return static_cast<long>(count);
}

const perturbed_kernel::registration* perturbed_kernel::edge_of(int fd) const {
    for (auto [at, end] = registered_.equal_range(fd); at != end; ++at) {
        if ((at->second.interest & EPOLLET) != 0) return &at->second;
    }
    return nullptr;
}

void perturbed_kernel::tell(int fd, unsigned events) {
    for (auto [at, end] = registered_.equal_range(fd); at != end; ++at) {
        const unsigned of_interest = events & at->second.interest;
        if (of_interest == 0 || (at->second.interest & EPOLLET) == 0) continue;
        epoll_event event{.events = of_interest, .data = {.u64 = at->second.data}};
        late_.push_back({at->second.epoll, event});
    }
}

long perturbed_kernel::transfer(pending_call& asked, unsigned worth_a_try) {
    const int fd = asked.descriptor();
    std::size_t shorter = 0;
    // Only descriptors that a loop watches; others may belong to a blocking call of the test.
    if (std::unique_lock locked{lock_}; const registration* const at = edge_of(fd)) {
        if (random_.chance(interrupted)) return -EINTR;
        // Only a lack of memory is possible. The kernel never hides bytes that can be read.
        if (worth_a_try == EPOLLOUT && random_.chance(no_room)) {
            tell(fd, worth_a_try);
            return -EAGAIN;
        }
        const bool plain = asked.which() == call::recv || asked.which() == call::send;
        const std::size_t size = plain && at->is_stream ? asked.argument<std::size_t>(2) : 0;
        if (size > whole_message && random_.chance(cut_short)) {
            shorter = whole_message + random_.size_up_to(size - whole_message) - 1;
        }
    }
    const auto whole = asked.size() > 2 ? asked.argument<std::size_t>(2) : 0;
    if (shorter == 0) return asked.make();
    asked.replace(2, shorter);
    const long outcome = asked.make();
    asked.replace(2, whole);
    if (worth_a_try == EPOLLIN && std::cmp_equal(outcome, shorter)) {
        // The rest must appear to have arrived after this call.
        const std::scoped_lock locked{lock_};
        tell(fd, EPOLLIN);
    }
    return outcome;
}

} // namespace simplenet::v0::simulation
