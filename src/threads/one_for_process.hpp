#pragma once
// one_for_process: objects with threads of their own that serve the whole process. Layer threads,
// private.

#include "threads/forks.hpp"

#include <atomic>
#include <memory>

namespace simplenet::v0::detail {

/// What such an object knows of its process: a base of `Object`.
///
/// Never destroyed: its threads may be at work when the process ends. A child made by fork(2) has
/// one of its own: the threads are gone there, and one of them may have held a mutex. What is left
/// of them is never looked at again.
template <class Object>
class one_for_process {
public:
    /// That of this process, by way of `current`; if need be made by `make()`, as a
    /// std::unique_ptr.
    template <class Make>
    [[nodiscard]] static Object& get(std::atomic<Object*>& current, Make make) {
        Object* known = current.load(std::memory_order_acquire);
        while (known == nullptr || known->made_in_ != fork_generation()) {
            // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): `current` has it.
            std::unique_ptr<Object> made = make();
            made->inherited_ = known;
            if (current.compare_exchange_strong(known, made.get())) return *made.release();
        }
        return *known;
    }

private:
    friend Object; // so that it is the base of no other class

    one_for_process() noexcept = default;
    ~one_for_process() = default;

    const unsigned made_in_ = fork_generation();
    Object* inherited_ = nullptr; // of the process that forked us; kept for leak checkers
};

} // namespace simplenet::v0::detail
