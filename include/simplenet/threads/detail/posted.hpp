#pragma once
// posted: work that other threads pass to a loop. Layer threads, private.

#include <simplenet/coro/detail/frame_allocator.hpp>

#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Work for a loop, on its thread. The loop owns it once it is posted.
class posted {
public:
    posted(const posted&) = delete;
    posted& operator=(const posted&) = delete;

    /// Called on the loop's thread. Destroys itself.
    virtual void run() noexcept = 0;
    /// Called instead of run() if the loop is destroyed. Destroys itself.
    virtual void drop() noexcept = 0;

protected:
    posted() noexcept = default;
    ~posted() = default;

private:
    friend class inbox;
    posted* next_ = nullptr;
};

/// A callable in recycled memory.
template <class Function>
class posted_call final : public posted, public recycled_message {
public:
    explicit posted_call(Function function)
        : function_{std::move(function)} {}

    void run() noexcept override {
        function_(); // an exception cannot be received: std::terminate
        delete this;
    }
    void drop() noexcept override { delete this; }

private:
    Function function_;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
