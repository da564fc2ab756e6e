#pragma once
// posted: what other threads hand to a loop. Layer threads, private.

#include <type_traits>
#include <utility>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Something for a loop to do on its thread. Owned by the loop once it was posted.
class posted {
public:
    posted(const posted&) = delete;
    posted& operator=(const posted&) = delete;

    /// On the loop's thread. Disposes of itself.
    virtual void run() noexcept = 0;
    /// The loop was destroyed before. Disposes of itself.
    virtual void drop() noexcept = 0;

protected:
    posted() noexcept = default;
    ~posted() = default;

private:
    friend class inbox;
    posted* next_ = nullptr;
};

/// A callable on the heap.
template <class Function>
class posted_call final : public posted {
public:
    explicit posted_call(Function function)
        : function_{std::move(function)} {}

    void run() noexcept override {
        function_(); // an exception has nowhere to go: std::terminate
        delete this;
    }
    void drop() noexcept override { delete this; }

private:
    Function function_;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
