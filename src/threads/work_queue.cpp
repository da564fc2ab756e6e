#include <simplenet/threads/detail/work_queue.hpp>

#include <simplenet/core/detail/contract.hpp>

namespace simplenet::v0::detail {

work_queue::work_queue(std::size_t limit)
    : limit_{limit} {
    SIMPLENET_EXPECTS(limit > 0, "the queue_limit of a thread_pool is at least 1");
}

/// @pre The mutex is held.
void work_queue::place(work_item& item) noexcept {
    item.has_place_ = true;
    queue_.push_back(item);
}

/// @pre The mutex is held.
void work_queue::fill_places() noexcept {
    while (taken_ < limit_ && !applicants_.empty()) {
        place(applicants_.pop_front());
        ++taken_;
    }
}

void work_queue::push(work_item& item) noexcept {
    lock held{guard_};
    if (closed_) {
        held.unlock();
        return item.drop();
    }
    place(item);
    ++taken_;
    notify(std::move(held));
}

void work_queue::apply(work_item& item) noexcept {
    lock held{guard_};
    if (closed_) {
        held.unlock();
        return item.drop();
    }
    if (taken_ >= limit_) {
        item.has_place_ = false;
        return applicants_.push_back(item);
    }
    place(item);
    ++taken_;
    notify(std::move(held));
}

bool work_queue::remove(work_item& item) noexcept {
    lock held{guard_};
    if (!item.linked()) return false;
    item.unlink();
    if (!item.has_place_) return true;
    --taken_;
    fill_places();
    if (!queue_.empty()) notify(std::move(held));
    return true;
}

bool work_queue::reserve() noexcept {
    const lock held{guard_};
    if (taken_ >= limit_) return false;
    ++taken_;
    return true;
}

void work_queue::unreserve() noexcept {
    lock held{guard_};
    --taken_;
    fill_places();
    if (!queue_.empty()) notify(std::move(held));
}

void work_queue::put(work_item& item) noexcept {
    lock held{guard_};
    if (closed_) {
        --taken_;
        held.unlock();
        return item.drop();
    }
    place(item);
    notify(std::move(held));
}

work_item& work_queue::pop() noexcept {
    work_item& first = queue_.pop_front();
    --taken_;
    fill_places();
    return first;
}

void work_queue::close() noexcept {
    {
        const lock held{guard_};
        closed_ = true;
    }
    // One by one: a waiter may withdraw an item meanwhile.
    for (;;) {
        work_item* item = nullptr;
        {
            const lock held{guard_};
            if (queue_.empty() && applicants_.empty()) return;
            item = queue_.empty() ? &applicants_.pop_front() : &queue_.pop_front();
        }
        item->drop();
    }
}

} // namespace simplenet::v0::detail
