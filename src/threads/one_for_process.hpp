#pragma once
// one_for_process: objects with their own threads that serve the whole process. Layer threads,
// private.

#include "threads/forks.hpp"

#include <atomic>
#include <memory>

namespace simplenet::v0::detail {

/// Ties such an object to its process: a base of `Object`.
///
/// Never destroyed, because its threads may be running when the process ends. A child of fork(2)
/// gets its own object: the threads do not exist there, and one of them may have held a mutex. The
/// remains of the parent's object are never used.
template <class Object>
class one_for_process {
public:
    /// The object of this process, stored in `current`; created by `make()`, as a std::unique_ptr,
    /// if necessary.
    template <class Make>
    [[nodiscard]] static Object& get(std::atomic<Object*>& current, Make make) {
        Object* known = current.load(std::memory_order_acquire);
        while (known == nullptr || known->made_in_ != fork_generation()) {
            // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): `current` owns it.
            std::unique_ptr<Object> made = make();
            made->inherited_ = known;
            if (current.compare_exchange_strong(known, made.get())) return *made.release();
        }
        return *known;
    }

private:
    friend Object; // so that no other class can use it as a base

    one_for_process() noexcept = default;
    ~one_for_process() = default;

    const unsigned made_in_ = fork_generation();
    Object* inherited_ = nullptr; // the parent process's; kept for leak checkers
};

} // namespace simplenet::v0::detail
