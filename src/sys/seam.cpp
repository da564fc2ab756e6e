#include "sys/seam.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <thread>

namespace simplenet::v0::detail::sys {

namespace {

std::atomic<unsigned> inside = 0; // threads in an interceptor

/// An interceptor stays installed until it has answered.
class asking {
public:
    asking() noexcept { inside.fetch_add(1); }
    asking(const asking&) = delete;
    asking& operator=(const asking&) = delete;
    ~asking() { inside.fetch_sub(1); }

    [[nodiscard]] interceptor* first() const noexcept { return first_interceptor.load(); }
};

} // namespace

const char* to_string(call which) noexcept {
    static constexpr std::array names{
        "accept",         "bind",         "close",      "connect",        "epoll_create",
        "epoll_ctl",      "epoll_pwait2", "epoll_wait", "eventfd",        "fcntl",
        "freeaddrinfo",   "fstat",        "fstatat",    "getaddrinfo",    "getdents",
        "getpeername",    "getsockname",  "getsockopt", "if_nametoindex", "ioctl",
        "listen",         "lstat",        "mmap",       "munmap",         "openat",
        "openat2",        "pipe",         "poll",       "pread",          "read",
        "readlinkat",     "recv",         "recvfrom",   "recvmmsg",       "recvmsg",
        "send",           "sendfile",     "sendmmsg",   "sendmsg",        "sendto",
        "setsockopt",     "shutdown",     "signalfd",   "socket",         "socketpair",
        "splice",         "thread",       "unlink",     "uring_enable",   "uring_enter",
        "uring_register", "uring_setup",  "write"};
    static_assert(names.size() == static_cast<std::size_t>(call::count_of_calls));
    return names[static_cast<std::size_t>(which)];
}

intercepting::intercepting(interceptor& with) noexcept
    : with_{with} {
    with_.next_ = first_interceptor.load();
    first_interceptor.store(&with_);
}

intercepting::~intercepting() {
    SIMPLENET_EXPECTS(first_interceptor.load() == &with_,
                      "interceptors are removed in the reverse order");
    first_interceptor.store(with_.next_);
    while (inside.load() != 0)
        std::this_thread::yield();
}

long pending_call::make() noexcept {
    interceptor* const asked = next_;
    if (asked == nullptr) {
        // The call may sleep in the kernel, and nobody should wait for that.
        inside.fetch_sub(1);
        const long outcome = make_(function_, arguments_);
        inside.fetch_add(1);
        return outcome;
    }
    next_ = asked->next();
    const long outcome = asked->on_call(*this);
    next_ = asked; // so that it may be made again
    return outcome;
}

long intercept(pending_call& call) noexcept {
    const asking now;
    call.next_ = now.first();
    return call.make();
}

int intercept(pending_entry& entry) noexcept {
    const asking now;
    for (interceptor* each = now.first(); each != nullptr; each = each->next()) {
        if (const int outcome = each->on_entry(entry); outcome != 0) return outcome;
    }
    return 0;
}

verdict intercept(reaped_completion& completion) noexcept {
    const asking now;
    for (interceptor* each = now.first(); each != nullptr; each = each->next()) {
        const verdict given = each->on_completion(completion);
        if (given.polls != 0 || given.ends) return given;
    }
    return {};
}

bool intercept_buffers() noexcept {
    const asking now;
    for (interceptor* each = now.first(); each != nullptr; each = each->next()) {
        if (!each->on_buffers()) return false;
    }
    return true;
}

} // namespace simplenet::v0::detail::sys
