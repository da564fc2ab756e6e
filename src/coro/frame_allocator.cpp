#include <simplenet/coro/detail/frame_allocator.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace simplenet::v0::detail {

namespace {

/// The actual size of a frame: that of its class, so that it fits any frame of the class.
constexpr std::size_t rounded(std::size_t bytes) noexcept {
    const std::size_t index = frame_cache::index_of(bytes);
    return index < frame_cache::class_count ? frame_cache::bytes_of(index) : bytes;
}

/// Empties the thread's cache when the thread ends.
class cache_closer {
public:
    cache_closer() noexcept = default;
    cache_closer(const cache_closer&) = delete;
    cache_closer& operator=(const cache_closer&) = delete;
    ~cache_closer() {
        this_thread_frames.current = frame_cache::state::closed;
        for (auto& each : this_thread_frames.classes) {
            each.room = 0; // frames freed from here on go to the system
            for (auto* frame = std::exchange(each.first, nullptr); frame != nullptr;)
                ::operator delete(std::exchange(frame, frame->next));
        }
    }
};

[[maybe_unused]] void open_cache() noexcept {
    static thread_local cache_closer closer;
    this_thread_frames.current = frame_cache::state::open;
    std::size_t index = 0;
    for (auto& each : this_thread_frames.classes) {
        const std::size_t bytes = frame_cache::bytes_of(index++);
        each.room = static_cast<std::uint32_t>(frame_cache::class_limit_bytes / bytes);
    }
}

/// Batches of free frames of one class that any thread may take.
///
/// A batch is passed by one exchange and belongs to one thread at a time, so there is no list whose
/// head could return.
class alignas(64) depot {
public:
    [[nodiscard]] bool is_full() const noexcept {
        return std::ranges::none_of(places_, [](const auto& each) {
            return each.load(std::memory_order_relaxed) == nullptr;
        });
    }
    /// False if every place is taken.
    [[nodiscard]] bool leave(frame_cache::batch* frames) noexcept {
        for (auto& each : places_) {
            frame_cache::batch* free = nullptr;
            if (each.load(std::memory_order_relaxed) == nullptr &&
                each.compare_exchange_strong(free, frames, std::memory_order_release,
                                             std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }
    /// Null if there is none.
    [[nodiscard]] frame_cache::batch* take() noexcept {
        for (auto& each : places_) {
            if (each.load(std::memory_order_relaxed) == nullptr) continue;
            if (auto* const found = each.exchange(nullptr, std::memory_order_acquire)) return found;
        }
        return nullptr;
    }

private:
    std::array<std::atomic<frame_cache::batch*>, 8> places_{};
};

constinit std::array<depot, frame_cache::class_count> depots{};

/// Moves a batch from a full list to the depot. False if that is full.
[[maybe_unused]] bool leave_batch(std::size_t index) noexcept {
    if (depots[index].is_full()) return false;
    auto& list = this_thread_frames.classes[index];
    const auto count = static_cast<std::uint32_t>(
        std::max<std::size_t>(frame_cache::batch_bytes / frame_cache::bytes_of(index), 1));
    frame_cache::free_frame* const first = list.first;
    frame_cache::free_frame* last = first;
    for (std::uint32_t more = 1; more != count; ++more)
        last = last->next;
    frame_cache::free_frame* const rest = std::exchange(last->next, nullptr);
    frame_cache::free_frame* const second = first->next;
    auto* const frames = ::new (first) frame_cache::batch{{second}, count};
    if (!depots[index].leave(frames)) {
        last->next = rest; // another thread was faster
        list.first = frames;
        return false;
    }
    list.first = rest;
    list.room += count;
    return true;
}

/// Moves a batch from the depot to an empty list. False if there is none.
[[maybe_unused]] bool take_batch(std::size_t index) noexcept {
    if (this_thread_frames.current == frame_cache::state::closed) return false;
    frame_cache::batch* const frames = depots[index].take();
    if (frames == nullptr) return false;
    if (this_thread_frames.current == frame_cache::state::unopened) open_cache();
    auto& list = this_thread_frames.classes[index];
    list.first = frames;
    list.room -= frames->count;
    return true;
}

} // namespace

// A program that is built with AddressSanitizer passes by the lists of a library that is not: then
// a list need not be empty here, or full.
void* allocate_recycled_cold(std::size_t bytes) {
    if constexpr (recycles_frames) {
        const std::size_t index = frame_cache::index_of(bytes);
        if (index < frame_cache::class_count &&
            this_thread_frames.classes[index].first == nullptr && take_batch(index)) {
            return allocate_recycled(bytes);
        }
    }
    return ::operator new(rounded(bytes));
}

void deallocate_recycled_cold(void* memory, std::size_t bytes) noexcept {
    if constexpr (recycles_frames) {
        const std::size_t index = frame_cache::index_of(bytes);
        if (index < frame_cache::class_count) {
            if (this_thread_frames.current == frame_cache::state::unopened) {
                open_cache();
                return deallocate_recycled(memory, bytes);
            }
            if (this_thread_frames.current == frame_cache::state::open &&
                this_thread_frames.classes[index].room == 0 && leave_batch(index)) {
                return deallocate_recycled(memory, bytes);
            }
        }
    }
    ::operator delete(memory);
}

} // namespace simplenet::v0::detail
