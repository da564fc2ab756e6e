#include <simplenet/threads/strand.hpp>

#include "threads/pool_core.hpp"

#include <cstddef>
#include <utility>

namespace simplenet::v0 {
namespace detail {

/// A queue that waits in the queue of its pool while there is something in it.
// idle     empty; not in the pool's queue
// active   in the pool's queue, or a thread runs its callables. Holds itself
class strand_core final : public work_queue,
                          private work_item,
                          public std::enable_shared_from_this<strand_core> {
public:
    explicit strand_core(std::shared_ptr<pool_core> pool)
        : work_queue{pool->limit()}
        , pool_{std::move(pool)} {}
    ~strand_core() = default;

private:
    void notify(lock held) noexcept override {
        if (self_) return;
        self_ = shared_from_this();
        held.unlock();
        pool_->push(*this);
    }

    void run() noexcept override {
        // Others wait for the pool's threads too.
        constexpr std::size_t most = 16;
        for (std::size_t count = 0; count != most; ++count) {
            work_item* item = nullptr;
            {
                const lock held = locked();
                if (work_queue::empty()) break;
                item = &pop();
            }
            item->run();
        }
        const auto keeps = sleep_if_empty();
        if (!keeps) pool_->push(*this);
    }
    /// The pool has been destroyed.
    void drop() noexcept override {
        close();
        static_cast<void>(sleep_if_empty());
    }

    /// Empty: it is still active.
    std::shared_ptr<strand_core> sleep_if_empty() noexcept {
        const lock held = locked();
        return work_queue::empty() ? std::move(self_) : nullptr;
    }

    const std::shared_ptr<pool_core> pool_;
    std::shared_ptr<strand_core> self_; // under the mutex: set while it is active
};

} // namespace detail

inline namespace runtime {

strand::strand(thread_pool& pool)
    : core_{std::make_shared<detail::strand_core>(detail::pool_access::core(pool))} {}

strand::~strand() = default;

detail::work_queue& strand::queue() const noexcept {
    return *core_;
}

} // namespace runtime

std::shared_ptr<detail::work_queue> detail::pool_access::queue(const thread_pool& of) noexcept {
    return of.core_;
}

std::shared_ptr<detail::work_queue> detail::pool_access::queue(const strand& of) noexcept {
    return of.core_;
}

} // namespace simplenet::v0
