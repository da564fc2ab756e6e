#pragma once
// strand: callables on a pool, one after another. Layer threads.

#include <simplenet/threads/thread_pool.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace simplenet::v0::detail {
// Internal: not exported, because it is first declared here.
class strand_core;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// Runs callables on the threads of a pool in the order in which they were posted, never two at
/// once: what one of them wrote, the next one sees.
///
/// For state that callables share without a mutex. Owns the callables that wait; their number has a
/// limit of its own, the pool's queue_limit. No lock is held while one runs, so it may post to its
/// own strand. After 16 callables the strand goes to the end of the pool's queue. Await a call with
/// run_on().
///
/// Destroying the strand lets the callables in it run. Destroying the pool destroys them; then a
/// post to the strand destroys its callable.
///
/// @par Thread safety
/// Any thread.
/// @par Example
/// @snippet threads.cpp strand
class strand {
public:
    explicit strand(thread_pool& pool);
    strand(const strand&) = delete;
    strand& operator=(const strand&) = delete;
    ~strand();

    /// Calls `function` after the callables that were posted before; takes it in any case.
    ///
    /// @pre No exception leaves `function`: as of a std::thread, it calls std::terminate.
    template <std::invocable Function>
    void post(Function&& function) {
        using call = detail::work_call<std::decay_t<Function>>;
        queue().push(*new call{std::forward<Function>(function)});
    }
    /// The same, unless as many callables as the pool's queue_limit wait in this strand: then it
    /// returns false and leaves `function` as it is.
    template <std::invocable Function>
    [[nodiscard]] bool try_post(Function&& function) {
        return detail::try_post_to(queue(), std::forward<Function>(function));
    }

private:
    friend detail::pool_access;
    [[nodiscard]] detail::work_queue& queue() const noexcept;

    std::shared_ptr<detail::strand_core> core_; // shared with its callables and awaited calls
};

} // namespace runtime

struct detail::pool_access {
    /// What its callables wait in; may outlive it.
    [[nodiscard]] static std::shared_ptr<work_queue> queue(const thread_pool& of) noexcept;
    [[nodiscard]] static std::shared_ptr<work_queue> queue(const strand& of) noexcept;
    [[nodiscard]] static const std::shared_ptr<pool_core>& core(const thread_pool& of) noexcept {
        return of.core_;
    }
};

} // namespace simplenet::v0

#pragma GCC visibility pop
