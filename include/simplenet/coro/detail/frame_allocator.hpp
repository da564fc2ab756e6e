#pragma once
// The memory of coroutine frames and of posts: per-thread free lists by size, so that a program in
// its steady state does not call malloc. Layer coro. Used through `recycled`, the base of promises
// and of the root objects of spawned tasks, and `recycled_message`, the base of posts.
//
// What one thread allocates and another one frees, such as a post, comes back through a depot: a
// thread whose list is full leaves a batch there, and a thread whose list is empty takes one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

// Under AddressSanitizer every frame is returned to the system at once: recycling would hide a use
// after free. Sizes are rounded as in other builds, so that a sanitized program may link a library
// built without the sanitizer and free a frame that the library allocated.
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

/// The free frames of one thread; no other thread touches them.
///
/// Trivial to construct and destroy: so access to the thread_local below is a plain memory access,
/// and possible while the thread's other variables are being destroyed.
struct frame_cache {
    // Classes of 24, 56, 88 bytes and so on: malloc(3) keeps 8 bytes before each block and returns
    // multiples of 16, so this wastes nothing. A connection has three of these.
    static constexpr std::size_t granule_bytes = 32;
    static constexpr std::size_t overhead_bytes = 8;
    static constexpr std::size_t class_count = 129;
    /// Larger frames are not recycled.
    static constexpr std::size_t largest_bytes = class_count * granule_bytes - overhead_bytes;
    /// The limit of one class: 32 MiB per thread if a program filled every class.
    static constexpr std::size_t class_limit_bytes = std::size_t{256} * 1024;

    struct free_frame {
        free_frame* next;
    };
    /// The first of several frames that move through the depot.
    struct batch : free_frame {
        std::uint32_t count; // frames in the list
    };
    static constexpr std::size_t batch_bytes = std::size_t{8} * 1024;
    struct size_class {
        free_frame* first = nullptr;
        std::uint32_t room = 0; // how many more frames it takes; 0 unless `open`
    };

    // unopened  holds nothing; the first freed frame or taken batch opens it
    // open      will be emptied when the thread ends
    // closed    the thread is ending; holds nothing any more
    enum class state : std::uint8_t { unopened, open, closed };

    std::array<size_class, class_count> classes{};
    std::ptrdiff_t live = 0; // frames allocated here minus frames freed here
    state current = state::unopened;

    /// The class for `bytes`; at least `class_count` if frames of this size are not recycled.
    static constexpr std::size_t index_of(std::size_t bytes) noexcept {
        return (bytes + overhead_bytes - 1) / granule_bytes;
    }
    /// The size of a frame of that class.
    static constexpr std::size_t bytes_of(std::size_t index) noexcept {
        return (index + 1) * granule_bytes - overhead_bytes;
    }
};

inline constinit thread_local frame_cache this_thread_frames{};

[[nodiscard]] void* allocate_recycled_cold(std::size_t bytes);
void deallocate_recycled_cold(void* memory, std::size_t bytes) noexcept;

/// Returns memory that is aligned to `__STDCPP_DEFAULT_NEW_ALIGNMENT__`. Throws the exceptions of
/// `::operator new`.
///
/// @par Thread safety
/// Any thread.
///
/// @par Cost
/// Reuses memory of this size that this thread freed earlier, if there is some: about ten
/// instructions. Otherwise takes a batch from the depot. If that is empty, and always above 4 KiB,
/// calls `::operator new`.
[[nodiscard]] inline void* allocate_recycled(std::size_t bytes) {
    if constexpr (recycles_frames) {
        const std::size_t index = frame_cache::index_of(bytes);
        if (index < frame_cache::class_count) [[likely]] {
            auto& matching = this_thread_frames.classes[index];
            if (auto* const frame = matching.first; frame != nullptr) [[likely]] {
                matching.first = frame->next;
                ++matching.room;
                return frame;
            }
        }
    }
    return allocate_recycled_cold(bytes);
}

/// Frees it. The calling thread keeps it until it ends, up to 256 KiB for each class of 32 bytes.
/// Beyond that memory goes to the depot, up to 64 KiB for each class, and then to
/// `::operator delete`.
///
/// @pre `memory` comes from `allocate_recycled(bytes)`, on any thread.
///
/// @par Thread safety
/// Any thread.
inline void deallocate_recycled(void* memory, std::size_t bytes) noexcept {
    if constexpr (recycles_frames) {
        const std::size_t index = frame_cache::index_of(bytes);
        if (index < frame_cache::class_count) [[likely]] {
            auto& matching = this_thread_frames.classes[index];
            if (matching.room != 0) [[likely]] {
                --matching.room;
                matching.first = ::new (memory) frame_cache::free_frame{matching.first};
                return;
            }
        }
    }
    deallocate_recycled_cold(memory, bytes);
}

/// The same for a frame, which live_frames() counts.
[[nodiscard]] inline void* allocate_frame(std::size_t bytes) {
    void* const frame = allocate_recycled(bytes);
    ++this_thread_frames.live;
    return frame;
}
inline void deallocate_frame(void* memory, std::size_t bytes) noexcept {
    --this_thread_frames.live;
    deallocate_recycled(memory, bytes);
}

/// Frames that this thread allocated minus frames it freed. Negative if a thread frees more frames
/// of other threads than it allocates: only the sum over all threads counts live frames.
[[nodiscard]] inline std::ptrdiff_t live_frames() noexcept {
    return this_thread_frames.live;
}

/// Gives a derived class, usually a coroutine promise, memory from the recycling allocator, which
/// counts it as a frame.
///
/// @pre Objects are deleted as the type they were created as, or through a virtual destructor: the
/// size selects the free list. None needs more than the default alignment.
struct recycled {
    [[nodiscard]] static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        deallocate_frame(memory, bytes);
    }
};

/// Gives a derived class memory from the recycling allocator, which does not count it as a frame.
///
/// @pre Objects are deleted as the type they were created as, or through a virtual destructor: the
/// size selects the free list.
struct recycled_message {
    [[nodiscard]] static void* operator new(std::size_t bytes) { return allocate_recycled(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        deallocate_recycled(memory, bytes);
    }
    // Types with a larger alignment are rare, and are not recycled.
    [[nodiscard]] static void* operator new(std::size_t bytes, std::align_val_t alignment) {
        return ::operator new(bytes, alignment);
    }
    static void operator delete(void* memory, std::size_t bytes,
                                std::align_val_t alignment) noexcept {
        ::operator delete(memory, bytes, alignment);
    }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
