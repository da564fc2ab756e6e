#include <simplenet/coro/detail/frame_allocator.hpp>

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

} // namespace

void* allocate_frame_from_system(std::size_t bytes) {
    void* const memory = ::operator new(rounded(bytes));
    ++this_thread_frames.live;
    return memory;
}

void deallocate_frame_cold(void* memory, std::size_t bytes) noexcept {
    if constexpr (recycles_frames) {
        if (this_thread_frames.current == frame_cache::state::unopened) {
            open_cache();
            return deallocate_frame(memory, bytes);
        }
    }
    --this_thread_frames.live;
    ::operator delete(memory);
}

} // namespace simplenet::v0::detail
