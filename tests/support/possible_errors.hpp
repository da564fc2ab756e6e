#pragma once
// possible_errors: the errors of each call and each io_uring entry.

#include "fault_plan.hpp"

#include <cerrno>
#include <span>

#include <linux/io_uring.h>
#include <netdb.h>

namespace simplenet::v0::testing {

/// An error that a call may report according to its manual page.
struct possible_error {
    int number;
    bool lasts = true;      // it may be reported repeatedly
    bool costs_one = false; // loses a connection, for whose end the scenario may wait forever
};

/// The most likely ones first. Errors whose cause a test cannot simulate are missing: an EAGAIN on
/// a ready socket, for example, loses the edge for which a loop waits.
inline std::span<const possible_error> errors_of(call which) {
    static constexpr possible_error once_only_eintr[]{{EINTR, false}};
    static constexpr possible_error no_descriptor[]{{EMFILE}, {ENFILE}, {ENOMEM}};
    static constexpr possible_error no_memory[]{{ENOMEM}};
    switch (which) {
    case call::accept: {
        static constexpr possible_error errors[]{{EMFILE},
                                                 {ECONNABORTED, true, true},
                                                 {EINTR, false},
                                                 {ENFILE},
                                                 {ENOBUFS},
                                                 {ENOMEM},
                                                 {EPROTO, true, true},
                                                 {ENETDOWN, true, true},
                                                 {EHOSTUNREACH, true, true},
                                                 {EPERM}};
        return errors;
    }
    case call::bind: {
        static constexpr possible_error errors[]{
            {EADDRINUSE}, {EACCES}, {EADDRNOTAVAIL}, {ENOMEM}, {EINTR, false}};
        return errors;
    }
    case call::close: {
        static constexpr possible_error errors[]{{EINTR}, {EIO}, {ENOSPC}};
        return errors;
    }
    case call::connect: {
        static constexpr possible_error errors[]{{ECONNREFUSED}, {EINTR, false}, {ETIMEDOUT},
                                                 {ENETUNREACH},  {EAGAIN},       {EADDRNOTAVAIL},
                                                 {EACCES},       {EPERM}};
        return errors;
    }
    case call::epoll_ctl: {
        static constexpr possible_error errors[]{{ENOSPC}, {ENOMEM}};
        return errors;
    }
    case call::epoll_pwait2: {
        static constexpr possible_error errors[]{{EINTR, false}, {ENOSYS}, {EPERM}};
        return errors;
    }
    case call::epoll_create:
    case call::eventfd:
    case call::signalfd:
    case call::pipe:
        return no_descriptor;
    case call::epoll_wait:
        return once_only_eintr;
    case call::fcntl: {
        static constexpr possible_error errors[]{{EPERM}, {EBUSY}, {ENOMEM}};
        return errors;
    }
    case call::getaddrinfo: { // a resolver's own EAI_ code is a negative number
        static constexpr possible_error errors[]{
            {EAI_AGAIN}, {EMFILE}, {EAI_NONAME}, {EAI_MEMORY}, {ENOMEM}};
        return errors;
    }
    case call::getpeername: {
        static constexpr possible_error errors[]{{ENOTCONN}, {ENOBUFS}};
        return errors;
    }
    case call::getsockname: {
        static constexpr possible_error errors[]{{ENOBUFS}};
        return errors;
    }
    case call::getsockopt:
    case call::setsockopt: {
        static constexpr possible_error errors[]{{ENOPROTOOPT}, {ENOMEM}, {EINVAL}};
        return errors;
    }
    case call::fstat: {
        static constexpr possible_error errors[]{{EIO, false}}; // only a hint
        return errors;
    }
    case call::fstatat: {
        static constexpr possible_error errors[]{{ENOENT}, {ENOMEM}, {EACCES}};
        return errors;
    }
    case call::getdents: {
        static constexpr possible_error errors[]{{EIO}, {ENOENT}, {ENOMEM}};
        return errors;
    }
    case call::openat: {
        static constexpr possible_error errors[]{{EMFILE},       {ENOENT}, {EACCES},
                                                 {EINTR, false}, {ENFILE}, {ENOMEM}};
        return errors;
    }
    case call::openat2: { // EAGAIN: a rename raced with it
        static constexpr possible_error errors[]{{ENOSYS},       {EMFILE}, {EAGAIN}, {EPERM},
                                                 {EINTR, false}, {ENOENT}, {ENFILE}, {ENOMEM}};
        return errors;
    }
    case call::readlinkat: {
        static constexpr possible_error errors[]{{EIO}, {ENOMEM}, {EINVAL}};
        return errors;
    }
    case call::if_nametoindex: {
        static constexpr possible_error errors[]{{ENODEV}};
        return errors;
    }
    case call::listen: {
        static constexpr possible_error errors[]{{EADDRINUSE}};
        return errors;
    }
    case call::lstat:
    case call::unlink: {
        static constexpr possible_error errors[]{{EACCES}, {ENOENT}, {ENOMEM}};
        return errors;
    }
    case call::mmap: {
        static constexpr possible_error errors[]{{ENOMEM}, {EAGAIN}};
        return errors;
    }
    case call::poll: {
        static constexpr possible_error errors[]{{EINTR, false}, {ENOMEM}};
        return errors;
    }
    case call::pread: {
        static constexpr possible_error errors[]{{EIO}, {EINTR, false}};
        return errors;
    }
    case call::read: {
        static constexpr possible_error errors[]{{EIO}, {EINTR, false}};
        return errors;
    }
    case call::recv:
    case call::recvmsg: {
        static constexpr possible_error errors[]{
            {ECONNRESET}, {EINTR, false}, {ENOMEM}, {ETIMEDOUT}};
        return errors;
    }
    case call::recvfrom:
    case call::recvmmsg: {
        static constexpr possible_error errors[]{{ECONNREFUSED}, {EINTR, false}, {ENOMEM}};
        return errors;
    }
    case call::send: {
        static constexpr possible_error errors[]{
            {EPIPE}, {EINTR, false}, {ECONNRESET}, {ENOBUFS}, {ENOMEM}};
        return errors;
    }
    case call::sendmsg: { // the last three: no UDP_SEGMENT on this route, device or kernel
        static constexpr possible_error errors[]{{EPIPE},  {EINTR, false}, {ECONNRESET}, {ENOBUFS},
                                                 {ENOMEM}, {EMSGSIZE},     {EIO},        {EINVAL}};
        return errors;
    }
    case call::sendto:
    case call::sendmmsg: {
        static constexpr possible_error errors[]{{ENOBUFS}, {EINTR, false}, {ECONNREFUSED},
                                                 {EPERM},   {ENOMEM},       {EMSGSIZE}};
        return errors;
    }
    case call::sendfile:
    case call::splice: {
        static constexpr possible_error errors[]{
            {EIO}, {EINVAL}, {EINTR, false}, {ENOMEM}, {EPIPE}};
        return errors;
    }
    case call::shutdown: {
        static constexpr possible_error errors[]{{ENOTCONN}};
        return errors;
    }
    case call::socket:
    case call::socketpair: {
        static constexpr possible_error errors[]{{EMFILE}, {ENFILE}, {ENOBUFS}, {EAFNOSUPPORT}};
        return errors;
    }
    case call::thread: {
        static constexpr possible_error errors[]{{EAGAIN}};
        return errors;
    }
    case call::uring_enter: {
        // A kernel with lasting errors here has stopped working.
        static constexpr possible_error errors[]{
            {EINTR, false}, {EAGAIN, false}, {EBUSY, false}, {ENOMEM, false}};
        return errors;
    }
    case call::uring_setup: {
        static constexpr possible_error errors[]{{ENOMEM}, {EMFILE}, {EPERM}, {ENOSYS}};
        return errors;
    }
    case call::uring_register:
        return no_memory;
    default: // cannot fail, or the library could do nothing about it
        return {};
    }
}

inline std::span<const possible_error> errors_of(fault_plan::entry_kind kind) {
    switch (kind.opcode) {
    case IORING_OP_ACCEPT: {
        static constexpr possible_error errors[]{{EMFILE},       {ECONNABORTED, true, true},
                                                 {EINTR, false}, {EAGAIN, false},
                                                 {ENFILE},       {ENOBUFS},
                                                 {ENOMEM}};
        return errors;
    }
    case IORING_OP_CONNECT: {
        static constexpr possible_error errors[]{
            {ECONNREFUSED}, {ETIMEDOUT}, {ENETUNREACH}, {EADDRNOTAVAIL}};
        return errors;
    }
    case IORING_OP_RECV: {
        static constexpr possible_error errors[]{{ECONNRESET},    {ENOBUFS, false}, {EINTR, false},
                                                 {EAGAIN, false}, {ETIMEDOUT},      {ENOMEM}};
        return errors;
    }
    case IORING_OP_SEND: {
        static constexpr possible_error errors[]{
            {EPIPE}, {ECONNRESET}, {EINTR, false}, {EAGAIN, false}, {ENOMEM}};
        return errors;
    }
    case IORING_OP_POLL_ADD: {
        static constexpr possible_error errors[]{{ENOMEM}};
        if (kind.multishot) return {}; // used by the loop only, for its wake-ups
        return errors;
    }
    default: // a cancel either finds its operation or does not
        return {};
    }
}

} // namespace simplenet::v0::testing
