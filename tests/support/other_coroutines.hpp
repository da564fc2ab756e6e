#pragma once
// other_coroutines: coroutine types like those of other libraries, which know nothing of this one.

#include <coroutine>
#include <exception>
#include <utility>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Starts when it is called and is never awaited; its frame is destroyed at its end.
struct eager_coroutine {
    struct promise_type {
        static eager_coroutine get_return_object() noexcept { return {}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_never final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        static void unhandled_exception() noexcept { std::terminate(); }
    };
};

/// Starts when a coroutine of any type awaits it; its owner destroys the frame.
class lazy_coroutine {
public:
    struct promise_type {
        struct to_awaiting {
            static bool await_ready() noexcept { return false; }
            static std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> self) noexcept {
                return self.promise().awaiting;
            }
            static void await_resume() noexcept {}
        };

        lazy_coroutine get_return_object() noexcept {
            return lazy_coroutine{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        static std::suspend_always initial_suspend() noexcept { return {}; }
        static to_awaiting final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        void unhandled_exception() noexcept { thrown = std::current_exception(); }

        std::coroutine_handle<> awaiting;
        std::exception_ptr thrown;
    };

    lazy_coroutine(lazy_coroutine&& other) noexcept
        : frame_{std::exchange(other.frame_, {})} {}
    lazy_coroutine& operator=(lazy_coroutine&&) = delete;
    ~lazy_coroutine() {
        if (frame_) frame_.destroy();
    }

    auto operator co_await() && noexcept {
        struct awaiter {
            std::coroutine_handle<promise_type> frame;
            static bool await_ready() noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
                frame.promise().awaiting = caller;
                return frame;
            }
            void await_resume() const {
                if (frame.promise().thrown) std::rethrow_exception(frame.promise().thrown);
            }
        };
        return awaiter{frame_};
    }

private:
    explicit lazy_coroutine(std::coroutine_handle<promise_type> frame) noexcept
        : frame_{frame} {}

    std::coroutine_handle<promise_type> frame_; // owned
};

/// Awaits `awaited` in a coroutine of another type.
template <class Awaitable>
lazy_coroutine from_outside(Awaitable awaited) {
    static_cast<void>(co_await std::move(awaited));
}

} // namespace simplenet::v0::testing
