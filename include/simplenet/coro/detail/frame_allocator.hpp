#pragma once
// The memory of coroutine frames: per-thread free lists by size, so that a program in its steady
// state does not call malloc. Layer coro. Used through `recycled`, from which promises and the
// root objects of spawned tasks derive.

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

// Under AddressSanitizer every frame goes back to the system at once: a recycled one would hide
// its use after free. Sizes are rounded as elsewhere, so that a sanitized program may link a
// library that was built without it and free a frame that the other side allocated.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool recycles_frames = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool recycles_frames = false;
#else
constexpr bool recycles_frames = true;
#endif
#else
constexpr bool recycles_frames = true;
#endif

/// The free frames of one thread, which alone touches them.
///
/// Trivial to construct and destroy: that keeps the thread_local below a plain memory access,
/// and usable while the thread's other variables are being destroyed.
struct frame_cache {
    // Of 24, 56, 88 bytes and so on: malloc(3) keeps 8 bytes of its own before each block and gives
    // out multiples of 16, so that nothing is lost to it. A connection has three of these.
    static constexpr std::size_t granule_bytes = 32;
    static constexpr std::size_t overhead_bytes = 8;
    static constexpr std::size_t class_count = 129;
    /// Beyond it frames are not recycled.
    static constexpr std::size_t largest_bytes = class_count * granule_bytes - overhead_bytes;
    /// What one class may hold, so 32 MiB a thread if a program used every class to the full.
    static constexpr std::size_t class_limit_bytes = std::size_t{256} * 1024;

    struct free_frame {
        free_frame* next;
    };
    struct size_class {
        free_frame* first = nullptr;
        std::uint32_t room = 0; // how many frames it still takes; 0 too unless `open`
    };

    // unopened  nothing is held; the first freed frame opens it
    // open      it will be emptied when the thread ends
    // closed    the thread is ending: nothing is held any more
    enum class state : std::uint8_t { unopened, open, closed };

    std::array<size_class, class_count> classes{};
    std::ptrdiff_t live = 0; // frames allocated here less frames freed here
    state current = state::unopened;

    /// The class for `bytes`; not below `class_count` for what is not recycled.
    static constexpr std::size_t index_of(std::size_t bytes) noexcept {
        return (bytes + overhead_bytes - 1) / granule_bytes;
    }
    /// What a frame of that class has.
    static constexpr std::size_t bytes_of(std::size_t index) noexcept {
        return (index + 1) * granule_bytes - overhead_bytes;
    }
};

inline constinit thread_local frame_cache this_thread_frames{};

[[nodiscard]] void* allocate_frame_from_system(std::size_t bytes);
void deallocate_frame_cold(void* memory, std::size_t bytes) noexcept;

/// Memory for a frame, aligned to `__STDCPP_DEFAULT_NEW_ALIGNMENT__`. Throws what
/// `::operator new` throws.
///
/// @par Thread safety
/// Any thread.
///
/// @par Cost
/// A frame of this size that this thread freed earlier, if there is one: about ten
/// instructions. Otherwise, and always above 4 KiB, `::operator new`.
[[nodiscard]] inline void* allocate_frame(std::size_t bytes) {
    if constexpr (recycles_frames) {
        const std::size_t index = frame_cache::index_of(bytes);
        if (index < frame_cache::class_count) [[likely]] {
            auto& matching = this_thread_frames.classes[index];
            if (auto* const frame = matching.first; frame != nullptr) [[likely]] {
                matching.first = frame->next;
                ++matching.room;
                ++this_thread_frames.live;
                return frame;
            }
        }
    }
    return allocate_frame_from_system(bytes);
}

/// Frees a frame. It stays with the thread that calls this, up to 256 KiB for each class of 32
/// bytes, until that thread ends; what exceeds that goes to `::operator delete`.
///
/// @pre `memory` comes from `allocate_frame(bytes)`, of any thread.
///
/// @par Thread safety
/// Any thread.
inline void deallocate_frame(void* memory, std::size_t bytes) noexcept {
    if constexpr (recycles_frames) {
        const std::size_t index = frame_cache::index_of(bytes);
        if (index < frame_cache::class_count) [[likely]] {
            auto& matching = this_thread_frames.classes[index];
            if (matching.room != 0) [[likely]] {
                --matching.room;
                matching.first = ::new (memory) frame_cache::free_frame{matching.first};
                --this_thread_frames.live;
                return;
            }
        }
    }
    deallocate_frame_cold(memory, bytes);
}

/// Frames this thread allocated less frames it freed. Negative where a thread frees more frames
/// of others than it makes: only the sum over all threads counts what is alive.
[[nodiscard]] inline std::ptrdiff_t live_frames() noexcept {
    return this_thread_frames.live;
}

/// Gives a derived class, a coroutine promise above all, memory from the recycling allocator.
///
/// @pre Objects are deleted as what they were created as, or through a virtual destructor: the
///      size finds the free list. None needs more than the default alignment.
struct recycled {
    [[nodiscard]] static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        deallocate_frame(memory, bytes);
    }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
