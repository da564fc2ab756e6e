#pragma once
// work_queue: callables that wait for a thread of a pool, or for their turn in a strand. Layer
// threads, private.

#include <simplenet/core/detail/intrusive_list.hpp>

#include <cstddef>
#include <mutex>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

class work_queue;

/// A callable for another thread. The queue owns it, from a push until it runs, is dropped or is
/// removed.
class work_item : public list_hook<> {
public:
    /// Called on a thread of the pool, once. Destroys itself.
    virtual void run() noexcept = 0;
    /// Called instead of run() if no thread will. Destroys itself.
    virtual void drop() noexcept = 0;

protected:
    work_item() noexcept = default;
    ~work_item() = default;

private:
    friend work_queue;
    bool has_place_ = false; // under the queue's mutex: not only an applicant for one
};

/// The callable of a post.
template <class Function>
class work_call final : public work_item {
public:
    template <class Given>
    explicit work_call(Given&& function)
        : function_{std::forward<Given>(function)} {}

    void run() noexcept override {
        function_(); // an exception cannot be received: std::terminate
        delete this;
    }
    void drop() noexcept override { delete this; }

private:
    Function function_;
};

/// First come, first served. Any thread; nothing is called under its mutex.
///
/// Invariant: applicants wait only while there is no free place.
class work_queue {
public:
    /// @param limit  Places for items that ask for one, at least 1.
    explicit work_queue(std::size_t limit);
    work_queue(const work_queue&) = delete;
    work_queue& operator=(const work_queue&) = delete;

    /// Takes `item` in any case. Drops it if the queue is closed.
    void push(work_item& item) noexcept;
    /// The same, except that it waits for a place.
    void apply(work_item& item) noexcept;
    /// Takes `item` back, which neither runs nor is dropped then. False: it is not here any more.
    [[nodiscard]] bool remove(work_item& item) noexcept;

    /// Keeps a place for put(). False: there is none.
    [[nodiscard]] bool reserve() noexcept;
    /// Gives the place back.
    void unreserve() noexcept;
    /// push() into the reserved place.
    void put(work_item& item) noexcept;

    /// Drops everything in it, and everything that comes later.
    void close() noexcept;

    [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

protected:
    using lock = std::unique_lock<std::mutex>;
    ~work_queue() = default;

    /// Called under the mutex after an item has got a place, or was waiting when another one was
    /// taken. Unlocks.
    virtual void notify(lock held) noexcept = 0;

    [[nodiscard]] lock locked() const noexcept { return lock{guard_}; }
    // Under the mutex:
    [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
    [[nodiscard]] bool is_closed() const noexcept { return closed_; }
    [[nodiscard]] std::size_t places_taken() const noexcept { return taken_; }
    /// @pre not empty.
    [[nodiscard]] work_item& pop() noexcept;

private:
    void place(work_item& item) noexcept;
    void fill_places() noexcept;

    mutable std::mutex guard_;
    intrusive_list<work_item> queue_;
    intrusive_list<work_item> applicants_;
    const std::size_t limit_;
    std::size_t taken_ = 0; // places: of the items in the queue, and reserved ones
    bool closed_ = false;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
