#include "sys/calls.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/unique_fd.hpp>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <ctime>

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simplenet::v0::detail::sys {

namespace {

/// For calls that no signal interrupts, or that must not be repeated.
template <class Call>
auto once(Call call) noexcept -> decltype(call()) {
    const auto outcome = call();
    return outcome >= 0 ? outcome : static_cast<decltype(call())>(-errno);
}

int control(int fd, int command, int value) noexcept {
    return ::fcntl(fd, command, value);
}

constexpr int flags_of(mode waiting) noexcept {
    return SOCK_CLOEXEC | (waiting == mode::nonblocking ? SOCK_NONBLOCK : 0);
}

timespec time_left(std::chrono::steady_clock::time_point deadline) noexcept {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    // Compared, not subtracted: the distance to time_point::min() is out of range.
    if (deadline <= now) return {};
    const auto left = deadline - now;
    const auto whole = duration_cast<seconds>(left);
    return {static_cast<std::time_t>(whole.count()),
            static_cast<long>(duration_cast<nanoseconds>(left - whole).count())};
}

} // namespace

ssize_t failure() noexcept {
    return -errno;
}

std::error_code error_from(ssize_t negative_errno) noexcept {
    SIMPLENET_EXPECTS(negative_errno < 0, "only a failed call has an error");
    return {static_cast<int>(-negative_errno), std::system_category()};
}

namespace {

/// Takes the SIGPIPE that a call has raised in this thread, which blocks it.
void take_sigpipe(const sigset_t& pipe) noexcept {
    const timespec no_wait{};
    siginfo_t taken{};
    if (uninterrupted([&] { return ::sigtimedwait(&pipe, &taken, &no_wait); }) < 0) return;
    // The kernel sends it in the name of this process. If another process sent one meanwhile, it is
    // put back and delivered when the thread no longer blocks it.
    const bool from_outside = taken.si_code <= 0 && taken.si_pid != ::getpid();
    if (from_outside) ::syscall(SYS_rt_sigqueueinfo, ::gettid(), SIGPIPE, &taken);
}

/// For sending calls that have no flag against SIGPIPE. The kernel directs the signal to this
/// thread.
// Such a call is a series of sends. The send that raises the signal moves nothing and ends the
// call, with EPIPE or with the short count of the sends before it. So a full count needs no check
// and costs three system calls; all other outcomes cost four.
template <class Call>
ssize_t without_sigpipe(std::size_t size, Call call) noexcept {
    sigset_t pipe;
    sigset_t before;
    sigset_t pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigemptyset(&before);
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
    const bool blocked = sigismember(&before, SIGPIPE) == 1;
    // A SIGPIPE that is already pending is not ours, and ours would not add a second one.
    const bool somebodys = blocked && ::sigpending(&pending) == 0 && //
                           sigismember(&pending, SIGPIPE) == 1;
    const ssize_t count = uninterrupted(call);
    const bool whole = count >= 0 && static_cast<std::size_t>(count) == size;
    if (!whole && !somebodys) take_sigpipe(pipe);
    if (!blocked) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return count;
}

} // namespace

ssize_t sendfile(int to, int from, off_t offset, std::size_t size) noexcept {
    return without_sigpipe(
        size, [&] { return made<call::sendfile>(::sendfile, to, from, &offset, size); });
}

ssize_t splice_into_pipe(int from, int pipe, std::size_t size) noexcept {
    return uninterrupted([&] {
        return made<call::splice>(::splice, from, nullptr, pipe, nullptr, size,
                                  SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    });
}

ssize_t splice_from_pipe(int pipe, int to, std::size_t size) noexcept {
    return without_sigpipe(size, [&] {
        return made<call::splice>(::splice, pipe, nullptr, to, nullptr, size,
                                  SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    });
}

int pipe(int (&ends)[2], std::size_t bytes) noexcept {
    if (made<call::pipe>(::pipe2, ends, O_CLOEXEC | O_NONBLOCK) != 0) return -errno;
    return made<call::fcntl>(control, ends[1], F_SETPIPE_SZ, static_cast<int>(bytes)) < 0 ? -errno
                                                                                          : 0;
}

ssize_t read_pipe(int pipe, void* data, std::size_t size) noexcept {
    return uninterrupted([&] { return made<call::read>(::read, pipe, data, size); });
}

bool is_refusal(ssize_t outcome) noexcept {
    return outcome == -EINVAL || outcome == -ENOSYS || outcome == -EPERM || outcome == -EACCES ||
           outcome == -EOPNOTSUPP;
}

std::int64_t file_size(int fd) noexcept {
    struct stat found{};
    const int looked = once([&] {
        return made<call::fstat>(
            [](int of, struct stat* into) noexcept { return ::fstat(of, into); }, fd, &found);
    });
    return looked == 0 && S_ISREG(found.st_mode) ? found.st_size : -1;
}

// Both are hints: if they fail, segments leave later or apart.

void cork(int fd, bool on) noexcept {
    static_cast<void>(set_option(fd, IPPROTO_TCP, TCP_CORK, static_cast<int>(on)));
}

// Setting TCP_NODELAY sends what is queued even if it is set already (tcp(7)).
void push(int fd) noexcept {
    int before = 0;
    if (get_option(fd, IPPROTO_TCP, TCP_NODELAY, before) < 0) return;
    if (set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) == 0 && before == 0) {
        static_cast<void>(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 0));
    }
}

ssize_t pread(int fd, void* data, std::size_t size, off_t offset) noexcept {
    return uninterrupted([&] { return made<call::pread>(::pread, fd, data, size, offset); });
}

int socket(int domain, int type, int protocol, mode waiting) noexcept {
    return once(
        [&] { return made<call::socket>(::socket, domain, type | flags_of(waiting), protocol); });
}

int socketpair(int type, mode waiting, int (&fds)[2]) noexcept {
    return once([&] {
        return made<call::socketpair>(::socketpair, AF_UNIX, type | flags_of(waiting), 0, fds);
    });
}

// EADDRINUSE: the port or path is in use. For a path, even by a file that a dead server left.
// EADDRNOTAVAIL: no interface of this machine has the address.
// EACCES: a port below 1024 without the privilege, or no write permission for the directory.
// EINTR: AF_UNIX takes a lock that a signal interrupts; nothing is bound yet.
int bind(int fd, const sockaddr* to, socklen_t size) noexcept {
    return uninterrupted([&] { return made<call::bind>(::bind, fd, to, size); });
}

int listen(int fd, int backlog) noexcept {
    return once([&] { return made<call::listen>(::listen, fd, backlog); });
}

// EMFILE, ENFILE, ENOBUFS, ENOMEM: no resources for the new socket. The connection stays queued.
// EINTR: nothing was taken from the queue.
int accept(int fd, mode waiting) noexcept {
    return uninterrupted(
        [&] { return made<call::accept>(::accept4, fd, nullptr, nullptr, flags_of(waiting)); });
}

// accept(2), NOTES: Linux reports pending network errors of the new socket as errors of accept().
// The manual lists EOPNOTSUPP too, but a socket that cannot listen also returns it, every time.
bool is_error_of_the_connection(int accept_outcome) noexcept {
    switch (-accept_outcome) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return true;
    default:
        return false;
    }
}

int connect(int fd, const sockaddr* to, socklen_t size) noexcept {
    return once([&] { return made<call::connect>(::connect, fd, to, size); });
}

int disconnect(int fd) noexcept {
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    return sys::connect(fd, &nobody, sizeof nobody);
}

int pending_error(int fd) noexcept {
    int error = 0;
    const int outcome = get_option(fd, SOL_SOCKET, SO_ERROR, error);
    return outcome < 0 ? outcome : -error;
}

namespace {

int ask(int fd, unsigned long what) noexcept {
    int answer = 0;
    const int outcome = once([&] {
        return made<call::ioctl>([](int of, unsigned long request,
                                    int* value) noexcept { return ::ioctl(of, request, value); },
                                 fd, what, &answer);
    });
    return outcome < 0 ? outcome : answer;
}

} // namespace

int unread_bytes(int fd) noexcept {
    return ask(fd, SIOCINQ);
}
int unsent_bytes(int fd) noexcept {
    return ask(fd, SIOCOUTQ);
}

int shutdown(int fd, int how) noexcept {
    return once([&] { return made<call::shutdown>(::shutdown, fd, how); });
}

int close(int fd) noexcept {
    return once([&] { return made<call::close>(::close, fd); });
}

int getsockname(int fd, sockaddr* name, socklen_t& size) noexcept {
    return once([&] { return made<call::getsockname>(::getsockname, fd, name, &size); });
}

int getpeername(int fd, sockaddr* name, socklen_t& size) noexcept {
    return once([&] { return made<call::getpeername>(::getpeername, fd, name, &size); });
}

int getpeername_of_accepted(int fd, sockaddr* name, socklen_t& size) noexcept {
    const int outcome = getpeername(fd, name, size);
    if (outcome != -ENOTCONN) return outcome;
    // EINVAL: more is asked for than the address has.
    for (const std::size_t each : {sizeof(sockaddr_in6), sizeof(sockaddr_in)}) {
        size = static_cast<socklen_t>(each);
        const int told = getsockopt(fd, SOL_SOCKET, SO_PEERNAME, name, size);
        if (told != -EINVAL) return told;
    }
    return outcome;
}

// ENOPROTOOPT, EOPNOTSUPP: not an option of this kind of socket. EDOM: value out of range.
int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
    return once([&] { return made<call::setsockopt>(::setsockopt, fd, level, name, value, size); });
}

// ENOTSOCK: the descriptor is not a socket.
int getsockopt(int fd, int level, int name, void* value, socklen_t& size) noexcept {
    return once(
        [&] { return made<call::getsockopt>(::getsockopt, fd, level, name, value, &size); });
}

int set_mode(int fd, mode waiting) noexcept {
    const int before = once([&] { return made<call::fcntl>(control, fd, F_GETFL, 0); });
    if (before < 0) return before;
    const int after = waiting == mode::nonblocking ? before | O_NONBLOCK : before & ~O_NONBLOCK;
    if (after == before) return 0;
    return once([&] { return made<call::fcntl>(control, fd, F_SETFL, after); });
}

bool refuse_descriptors(int fd) noexcept {
#ifdef SO_PASSRIGHTS
    constexpr int name = SO_PASSRIGHTS;
#else
    constexpr int name = 83; // asm-generic/socket.h, since Linux 6.16
#endif
    // Read again, because a kernel that is emulated may ignore what it does not know.
    int accepts = 1;
    return set_option(fd, SOL_SOCKET, name, 0) == 0 &&
           get_option(fd, SOL_SOCKET, name, accepts) == 0 && accepts == 0;
}

int set_close_on_exec(int fd) noexcept {
    return once([&] { return made<call::fcntl>(control, fd, F_SETFD, FD_CLOEXEC); });
}

int duplicate(int fd) noexcept {
    return once([&] { return made<call::fcntl>(control, fd, F_DUPFD_CLOEXEC, 0); });
}

int get_descriptor_flags(int fd) noexcept {
    return once([&] { return made<call::fcntl>(control, fd, F_GETFD, 0); });
}

int socket_file_number(const char* path, std::uint64_t& number) noexcept {
    struct stat found{};
    const int looked = once([&] { return made<call::lstat>(::lstat, path, &found); });
    if (looked < 0) return looked;
    if (!S_ISSOCK(found.st_mode)) return -ENOTSOCK;
    number = found.st_ino;
    return 0;
}

int unlink_socket(const char* path) noexcept {
    std::uint64_t number = 0;
    const int looked = socket_file_number(path, number);
    if (looked < 0) return looked;
    return once([&] { return made<call::unlink>(::unlink, path); });
}

int poll(int fd, short events,
         std::optional<std::chrono::steady_clock::time_point> deadline) noexcept {
    // poll(2) ignores negative descriptors, and would wait until the deadline.
    if (fd < 0) return -EBADF;
    for (;;) {
        pollfd waited{.fd = fd, .events = events, .revents = 0};
        timespec left{};
        if (deadline) left = time_left(*deadline);

        const int outcome = once([&] {
            return made<call::poll>(::ppoll, &waited, nfds_t{1}, deadline ? &left : nullptr,
                                    nullptr);
        });
        if (outcome > 0) return (waited.revents & POLLNVAL) != 0 ? -EBADF : waited.revents;
        // EINTR: a signal handler ran. The remaining time is computed again.
        if (outcome < 0 && outcome != -EINTR) return outcome;
        if (outcome == 0 && std::chrono::steady_clock::now() >= *deadline) return 0;
    }
}

int descriptor_limit() noexcept {
    rlimit limit{};
    // Fails only where a filter of system calls refuses it.
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return INT_MAX;
    return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
}

int descriptors_in_use() noexcept {
    struct stat found{};
    if (::stat("/proc/self/fd", &found) != 0 || found.st_size <= 0) return lowest_free_descriptor();
    return static_cast<int>(std::min<off_t>(found.st_size, INT_MAX));
}

int lowest_free_descriptor() noexcept {
    const int lowest = ::eventfd(0, EFD_CLOEXEC);
    if (lowest < 0) return INT_MAX;
    ::close(lowest);
    return lowest;
}

int eventfd(unsigned count) noexcept {
    return once([&] { return made<call::eventfd>(::eventfd, count, EFD_CLOEXEC | EFD_NONBLOCK); });
}

void signal_eventfd(int fd) noexcept {
    const std::uint64_t one = 1;
    // Fails only if the counter is full, after 2^64 wake-ups.
    static_cast<void>(!made<call::write>(::write, fd, &one, sizeof one));
}

void drain_eventfd(int fd) noexcept {
    std::uint64_t count = 0;
    static_cast<void>(!made<call::read>(::read, fd, &count, sizeof count));
}

int signalfd(const sigset_t& signals) noexcept {
    return once(
        [&] { return made<call::signalfd>(::signalfd, -1, &signals, SFD_NONBLOCK | SFD_CLOEXEC); });
}

int read_signal(int fd) noexcept {
    signalfd_siginfo info{};
    const ssize_t size =
        uninterrupted([&] { return made<call::read>(::read, fd, &info, sizeof info); });
    if (size < 0) return static_cast<int>(size);
    return size == sizeof info ? static_cast<int>(info.ssi_signo) : -EAGAIN;
}

void* map_memory(std::size_t bytes, int flags, int& error) noexcept {
    // As a number, MAP_FAILED is -1.
    constexpr auto map = [](std::size_t size, int how) noexcept {
        return reinterpret_cast<std::intptr_t>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, how, -1, 0));
    };
    const auto memory = made<call::mmap>(map, bytes, MAP_PRIVATE | MAP_ANONYMOUS | flags);
    if (memory != -1) return reinterpret_cast<void*>(memory);
    error = errno;
    return nullptr;
}

void unmap_memory(void* memory, std::size_t bytes) noexcept {
    static_cast<void>(made<call::munmap>(::munmap, memory, bytes));
}

} // namespace simplenet::v0::detail::sys

namespace simplenet::v0::detail {

// Declared in core, defined here, because only this layer makes system calls.
void close_descriptor(int fd) noexcept {
    sys::close(fd);
}

} // namespace simplenet::v0::detail
