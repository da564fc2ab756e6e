#pragma once
// fault_plan: faults between the library and the kernel, and a count of the possible ones.

#include "sigpipe_watch.hpp"
#include "sys/seam.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace simplenet::v0::testing {

using detail::sys::call;

inline constexpr unsigned from_then_on = std::numeric_limits<unsigned>::max();

/// Calls, entries and completions are counted from 0, over all threads of the process. Faults may
/// be added at any time; the plan's destruction ends all of them.
class fault_plan final : public detail::sys::interceptor {
public:
    /// A kind of entry of io_uring.
    struct entry_kind {
        std::uint8_t opcode;
        bool multishot;
        auto operator<=>(const entry_kind&) const = default;
    };

    fault_plan() = default;

    /// The `index`-th `which`, and the following `times` - 1, fail with `error`.
    void fail(call which, unsigned index, int error, unsigned times = 1) {
        add(calls_[number_of(which)], {.from = index, .times = times, .error = error});
    }
    /// The call moves at most `count` bytes.
    // Not for receiving: there, a short count means that the socket is empty (epoll(7)), and the
    // kernel does not return one if it is not.
    void shorten(call which, unsigned index, std::size_t count, unsigned times = 1) {
        add(calls_[number_of(which)], {.from = index, .times = times, .at_most = count});
    }
    /// The call moves at most `count` bytes, and the peer is gone afterwards, which all later calls
    /// find out. The kernel raises SIGPIPE at each of these calls, including the first, unless it
    /// is told not to.
    // sendfile(2) and splice(2) consist of several sends: the last one fails, and the call returns
    // the bytes that the others moved.
    void lose_peer(call which, unsigned index, std::size_t count) {
        add(calls_[number_of(which)],
            {.from = index, .times = 1, .at_most = count, .loses_peer = true});
        fail(which, index + 1, EPIPE, from_then_on);
    }
    void delay(call which, unsigned index, std::chrono::microseconds time, unsigned times = 1) {
        add(calls_[number_of(which)], {.from = index, .times = times, .delay = time});
    }

    void fail(entry_kind kind, unsigned index, int error, unsigned times = 1) {
        add(site_of(kind), {.from = index, .times = times, .error = error});
    }
    void shorten(entry_kind kind, unsigned index, std::size_t count, unsigned times = 1) {
        add(site_of(kind), {.from = index, .times = times, .at_most = count});
    }
    /// The `index`-th completion is delivered `polls` polls later.
    void hold(unsigned index, unsigned polls, unsigned times = 1) {
        add(completions_, {.from = index, .times = times, .polls = polls});
    }
    /// If the completion is of a multishot operation, that ends: quietly, or with `error`.
    void end_multishot(unsigned index, int error = 0, unsigned times = 1) {
        add(completions_, {.from = index, .times = times, .error = error, .ends = true});
    }
    /// The kernel does not get receive buffers back, from the `index`-th time they are published.
    void withhold_buffers(unsigned index, unsigned times) {
        add(buffers_, {.from = index, .times = times, .ends = true});
    }

    [[nodiscard]] unsigned count(call which) const {
        const std::lock_guard lock{guard_};
        return calls_[number_of(which)].seen;
    }
    [[nodiscard]] std::vector<std::pair<entry_kind, unsigned>> entries() const {
        const std::lock_guard lock{guard_};
        std::vector<std::pair<entry_kind, unsigned>> counts;
        for (const entry_site& each : std::span{entries_}.first(kinds_))
            counts.emplace_back(each.kind, each.at.seen);
        return counts;
    }
    [[nodiscard]] unsigned completions() const {
        const std::lock_guard lock{guard_};
        return completions_.seen;
    }
    [[nodiscard]] unsigned publications() const {
        const std::lock_guard lock{guard_};
        return buffers_.seen;
    }
    /// The number of faults that have occurred.
    [[nodiscard]] unsigned struck() const {
        const std::lock_guard lock{guard_};
        return struck_;
    }

private:
    using pending_call = detail::sys::pending_call;

    struct fault {
        unsigned from;
        unsigned times;
        int error = 0;
        std::optional<std::size_t> at_most{};
        std::chrono::microseconds delay{};
        unsigned polls = 0;
        bool ends = false;
        bool loses_peer = false;
    };
    struct site {
        unsigned seen = 0;
        std::vector<fault> faults{};

        /// The fault planned for the next one, if any.
        std::optional<fault> next() {
            const unsigned index = seen++;
            for (const fault& each : faults) {
                if (index >= each.from && index - each.from < each.times) return each;
            }
            return std::nullopt;
        }
    };

    struct entry_site {
        entry_kind kind;
        site at;
    };

    static std::size_t number_of(call which) noexcept { return static_cast<std::size_t>(which); }
    void add(site& at, const fault& planned) {
        const std::lock_guard lock{guard_};
        at.faults.push_back(planned);
    }
    site& site_of(entry_kind kind) noexcept {
        const std::lock_guard lock{guard_};
        for (entry_site& each : std::span{entries_}.first(kinds_)) {
            if (each.kind == kind) return each.at;
        }
        SIMPLENET_EXPECTS(kinds_ != entries_.size(), "a plan has room for 16 kinds of entries");
        entries_[kinds_].kind = kind;
        return entries_[kinds_++].at;
    }
    std::optional<fault> take(site& at) noexcept {
        const std::lock_guard lock{guard_};
        const auto planned = at.next();
        if (planned) ++struck_;
        return planned;
    }

    long on_call(pending_call& made) noexcept override {
        // A signal handler may wake a loop with it, and must not wait for this object's lock.
        if (made.which() == call::write) return made.make();
        const auto planned = take(calls_[number_of(made.which())]);
        if (!planned) return made.make();
        if (planned->delay.count() != 0) std::this_thread::sleep_for(planned->delay);
        if (planned->at_most) cut(made, *planned->at_most);
        if (planned->error != 0) return failed(made, planned->error);
        const long outcome = made.make();
        if (planned->loses_peer && raises_sigpipe(made)) raise_sigpipe_as_the_kernel();
        return outcome;
    }

    /// Whether the call sends without MSG_NOSIGNAL.
    static bool raises_sigpipe(const pending_call& made) noexcept {
        switch (made.which()) {
        case call::send:
        case call::sendto:
        case call::sendmmsg:
            return (made.argument<int>(3) & MSG_NOSIGNAL) == 0;
        case call::sendmsg:
            return (made.argument<int>(2) & MSG_NOSIGNAL) == 0;
        case call::sendfile:
            return true;
        case call::splice: // from a pipe, not into one
            return is_stream(made.argument<int>(2));
        default:
            return false;
        }
    }

    /// Fails like the kernel: some calls do their work nevertheless.
    static long failed(pending_call& made, int error) noexcept {
        if (error == EPIPE && raises_sigpipe(made)) raise_sigpipe_as_the_kernel();
        switch (made.which()) {
        case call::close: // the number is free in any case (close(2), NOTES)
            static_cast<void>(made.make());
            return -error;
        case call::connect: { // continues in the background (connect(2))
            if (error != EINTR || family_of(made.argument<const sockaddr*>(1)) == AF_UNIX) break;
            const long outcome = made.make();
            return outcome == 0 || outcome == -EINPROGRESS ? -error : outcome;
        }
        case call::accept: { // an error of a connection consumes it (accept(2), NOTES)
            if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
                error == EINTR) {
                break;
            }
            const long outcome = made.make();
            if (outcome < 0) return outcome;
            ::close(static_cast<int>(outcome));
            break;
        }
        default:
            break;
        }
        return -error;
    }
    static int family_of(const sockaddr* address) noexcept { return address->sa_family; }

    static bool is_stream(int fd) noexcept {
        int type = 0;
        socklen_t size = sizeof type;
        return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
    }
    static void cut(pending_call& made, std::size_t most) noexcept {
        switch (made.which()) {
        case call::send:
            if (!is_stream(made.descriptor())) return; // datagrams are sent completely
            return cut_argument(made, 2, most);
        case call::recv:
        case call::pread:
        case call::sendmmsg:
        case call::recvmmsg:
        case call::epoll_wait:
        case call::epoll_pwait2:
            return cut_argument(made, 2, most);
        case call::sendfile:
            return cut_argument(made, 3, most);
        case call::splice:
            return cut_argument(made, 4, most);
        default:
            return;
        }
    }
    static void cut_argument(pending_call& made, std::size_t at, std::size_t most) noexcept {
        if (made.argument<std::size_t>(at) > most) made.replace(at, most);
    }

    int on_entry(detail::sys::pending_entry& entry) noexcept override {
        const auto planned = take(site_of({entry.opcode, entry.multishot}));
        if (!planned) return 0;
        if (planned->at_most && entry.length > *planned->at_most) {
            entry.length = static_cast<std::uint32_t>(*planned->at_most);
        }
        return -planned->error;
    }
    detail::sys::verdict on_completion(detail::sys::reaped_completion&) noexcept override {
        const auto planned = take(completions_);
        if (!planned) return {};
        return {.polls = planned->polls, .ends = planned->ends, .error = -planned->error};
    }
    bool on_buffers() noexcept override { return !take(buffers_); }

    mutable std::mutex guard_;
    std::array<site, static_cast<std::size_t>(call::count_of_calls)> calls_;
    std::array<entry_site, 16> entries_; // not a map: allocations may be failing
    std::size_t kinds_ = 0;
    site completions_;
    site buffers_;
    unsigned struck_ = 0;
    detail::sys::intercepting installed_{*this};
};

} // namespace simplenet::v0::testing
