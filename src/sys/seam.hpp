#pragma once
// The seam: where tests intercept calls between the library and the kernel. Layer sys, private.
// Every system call of the library passes through made(), and every entry and completion of
// io_uring is shown here.
//
// Only with SIMPLENET_SEAMS, for builds with tests (docs/development/testing.md); without it made()
// is just the call, and nothing else of this file exists.

#include <cstddef>
#include <cstdint>

#if SIMPLENET_SEAMS
#include <array>
#include <atomic>
#include <cerrno>
#include <span>
#include <type_traits>
#include <utility>
#endif

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail::sys {

/// The calls that can fail. Named after the system call, or after the C library's function for it.
enum class call : std::uint8_t {
    accept,
    bind,
    close,
    connect,
    epoll_create,
    epoll_ctl,
    epoll_pwait2,
    epoll_wait,
    eventfd,
    fcntl,
    freeaddrinfo,
    fstat,
    fstatat,
    getaddrinfo,
    getdents,
    getpeername,
    getsockname,
    getsockopt,
    if_nametoindex,
    ioctl,
    listen,
    lstat,
    mmap,
    munmap,
    openat,
    openat2,
    pipe,
    poll,
    pread,
    read, // of an eventfd, a signalfd or a pipe
    readlinkat,
    recv,
    recvfrom,
    recvmmsg,
    recvmsg,
    send,
    sendfile,
    sendmmsg,
    sendmsg,
    sendto,
    setsockopt,
    shutdown,
    signalfd,
    socket,
    socketpair,
    splice,
    thread, // pthread_create(3), by way of std::thread
    unlink,
    uring_enable,
    uring_enter,
    uring_register,
    uring_setup,
    write, // of an eventfd
    count_of_calls
};

#if SIMPLENET_SEAMS

[[nodiscard]] const char* to_string(call which) noexcept;

class interceptor;

/// A system call on its way to the kernel.
class pending_call {
public:
    /// Arguments are passed as the kernel gets them: one word each.
    using word = std::uintptr_t;
    using maker = long (*)(const void* function, std::span<const word> arguments);

    pending_call(call which, std::span<word> arguments, const void* function, maker make) noexcept
        : which_{which}
        , arguments_{arguments}
        , function_{function}
        , make_{make} {}

    [[nodiscard]] call which() const noexcept { return which_; }
    [[nodiscard]] std::size_t size() const noexcept { return arguments_.size(); }
    /// An argument, counted from 0 in the order of the manual page.
    template <class T>
    [[nodiscard]] T argument(std::size_t at) const noexcept {
        return from_word<T>(arguments_[at]);
    }
    template <class T>
    void replace(std::size_t at, T value) noexcept {
        arguments_[at] = to_word(value);
    }
    /// The first argument, of calls on a descriptor.
    [[nodiscard]] int descriptor() const noexcept { return argument<int>(0); }

    /// Passes the call on, with its current arguments: to the next interceptor, finally to the
    /// kernel. The outcome has this layer's form: negative is a negated errno.
    long make() noexcept;

    template <class T>
    [[nodiscard]] static word to_word(T value) noexcept {
        if constexpr (std::is_null_pointer_v<T>) {
            return 0;
        } else if constexpr (std::is_pointer_v<T>) {
            return reinterpret_cast<word>(value);
        } else {
            return static_cast<word>(value);
        }
    }
    template <class T>
    [[nodiscard]] static T from_word(word value) noexcept {
        if constexpr (std::is_null_pointer_v<T>) {
            return nullptr;
        } else if constexpr (std::is_pointer_v<T>) {
            return reinterpret_cast<T>(value);
        } else {
            return static_cast<T>(value);
        }
    }

private:
    friend long intercept(pending_call&) noexcept;

    call which_;
    std::span<word> arguments_;
    const void* function_;
    maker make_;
    interceptor* next_ = nullptr; // asked by make()
};

/// An entry of io_uring before its submission.
struct pending_entry {
    std::uint8_t opcode;
    bool multishot;
    int fd;
    std::uint64_t about;   // its user_data
    std::uint32_t& length; // of the transfer; may be reduced
};

/// What happens to a completion.
struct verdict {
    /// Others come first: it is delivered that many polls later. Completions of the same entry wait
    /// with it.
    unsigned polls = 0;
    /// For a multishot: it ends, in the kernel too, after its other completions.
    bool ends = false;
    /// With `ends`: the negated errno of its last completion. 0: the kernel's last completion
    /// arrives without IORING_CQE_F_MORE.
    int error = 0;
};

/// A completion of io_uring; `res` and `flags` may be rewritten.
struct reaped_completion {
    std::uint64_t about;
    int res;
    unsigned flags;
};

/// Stands between the library and the kernel. Called on any thread that is in the library; the
/// interceptor installed last is asked first.
class interceptor {
public:
    interceptor() = default;
    interceptor(const interceptor&) = delete;
    interceptor& operator=(const interceptor&) = delete;
    virtual ~interceptor() = default;

    /// Answers for the kernel, or makes the call; a negative answer is a negated errno. For
    /// getaddrinfo a positive answer is an EAI_ with its sign changed.
    virtual long on_call(pending_call& call) noexcept { return call.make(); }

    /// 0: submit it. A negated errno: the kernel does not see it, and this is its outcome.
    virtual int on_entry(pending_entry&) noexcept { return 0; }
    virtual verdict on_completion(reaped_completion&) noexcept { return {}; }
    /// False: the kernel does not yet learn of free receive buffers.
    virtual bool on_buffers() noexcept { return true; }

    /// The interceptor to ask next, or null: the kernel.
    [[nodiscard]] interceptor* next() const noexcept { return next_; }

private:
    friend class intercepting;
    interceptor* next_ = nullptr;
};

/// Installs an interceptor for the whole process during its lifetime. Installations end in reverse
/// order; the end waits for threads in an interceptor, not for those in the kernel.
class intercepting {
public:
    explicit intercepting(interceptor& with) noexcept;
    intercepting(const intercepting&) = delete;
    intercepting& operator=(const intercepting&) = delete;
    ~intercepting();

private:
    interceptor& with_;
};

// Exported from a shared library: the components make calls, too, and there is one interceptor.
#pragma GCC visibility push(default)
inline constinit std::atomic<interceptor*> first_interceptor = nullptr;

[[nodiscard]] long intercept(pending_call& call) noexcept;
#pragma GCC visibility pop
[[nodiscard]] int intercept(pending_entry& entry) noexcept;
[[nodiscard]] verdict intercept(reaped_completion& completion) noexcept;
[[nodiscard]] bool intercept_buffers() noexcept;

/// Makes a call that returns -1 with an errno on failure; so does this.
template <call Which, class Function, class... Arguments>
auto made(Function function, Arguments... arguments) noexcept -> decltype(function(arguments...)) {
    using outcome_type = decltype(function(arguments...));
    if (first_interceptor.load(std::memory_order_acquire) == nullptr) {
        return function(arguments...);
    }
    std::array<pending_call::word, sizeof...(arguments)> words{pending_call::to_word(arguments)...};
    const auto make = [](const void* target, std::span<const pending_call::word> given) -> long {
        const auto& callee = *static_cast<const Function*>(target);
        return [&]<std::size_t... At>(std::index_sequence<At...>) -> long {
            const auto outcome = callee(pending_call::from_word<Arguments>(given[At])...);
            return outcome < 0 ? -errno : static_cast<long>(outcome);
        }(std::index_sequence_for<Arguments...>{});
    };
    pending_call call{Which, words, &function, make};
    const long outcome = intercept(call);
    if (outcome >= 0) return static_cast<outcome_type>(outcome);
    errno = static_cast<int>(-outcome);
    return -1;
}

#else

template <call, class Function, class... Arguments>
[[gnu::always_inline]] inline auto made(Function function, Arguments... arguments) noexcept
    -> decltype(function(arguments...)) {
    return function(arguments...);
}

#endif

} // namespace simplenet::v0::detail::sys
