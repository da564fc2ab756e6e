#include <simplenet/io/scratch.hpp>

#include <simplenet/coro/detail/frame_allocator.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

namespace simplenet::v0 {
namespace detail {

namespace {

/// The free blocks of one thread. Trivial to construct and destroy, as frame_cache is: so a scratch
/// may end while the thread's other variables are being destroyed.
struct scratch_cache {
    static constexpr std::size_t least_bytes = 1024;
    static constexpr std::size_t class_count = 8; // 1, 2, 4 ... 128 KiB
    /// The limit of one class: 8 MiB per thread if a program filled every class. A proxy holds a
    /// block of 16 KiB for each backend that it waits for.
    static constexpr std::size_t class_limit_bytes = std::size_t{1024} * 1024;

    struct block {
        block* next;
    };
    // unopened  holds nothing; the first returned block opens it
    // open      will be emptied when the thread ends
    // closed    the thread is ending; holds nothing any more
    enum class state : std::uint8_t { unopened, open, closed };

    struct size_class {
        block* first = nullptr;
        std::size_t bytes = 0; // of its blocks
    };

    std::array<size_class, class_count> classes{};
    state current = state::unopened;

    /// At least `class_count` if blocks of this size are not kept.
    static std::size_t index_of(std::size_t size) noexcept {
        return static_cast<std::size_t>(
            std::bit_width((std::max<std::size_t>(size, 1) - 1) / least_bytes));
    }
    static std::size_t bytes_of(std::size_t index) noexcept { return least_bytes << index; }
};

constinit thread_local scratch_cache scratch_of_thread{};

class scratch_closer {
public:
    scratch_closer() noexcept = default;
    scratch_closer(const scratch_closer&) = delete;
    scratch_closer& operator=(const scratch_closer&) = delete;
    ~scratch_closer() {
        scratch_of_thread.current = scratch_cache::state::closed;
        for (auto& [first, bytes] : scratch_of_thread.classes) {
            while (first != nullptr)
                ::operator delete(std::exchange(first, first->next));
        }
    }
};

void open_scratch_cache() noexcept {
    static thread_local scratch_closer closer;
    scratch_of_thread.current = scratch_cache::state::open;
}

} // namespace

} // namespace detail

inline namespace runtime {

scratch scratch::borrow(std::size_t bytes) {
    using cache = detail::scratch_cache;
    const std::size_t index = cache::index_of(bytes);
    if (index >= cache::class_count) return {static_cast<std::byte*>(::operator new(bytes)), bytes};
    auto& [first, kept] = detail::scratch_of_thread.classes[index];
    void* memory = first;
    if (memory != nullptr) {
        first = first->next;
        kept -= cache::bytes_of(index);
    } else {
        memory = ::operator new(cache::bytes_of(index));
    }
    return {static_cast<std::byte*>(memory), bytes};
}

void scratch::give_back() noexcept {
    using cache = detail::scratch_cache;
    const std::size_t index = cache::index_of(std::exchange(size_, 0));
    std::byte* const memory = std::exchange(data_, nullptr);
    // Under AddressSanitizer blocks are not kept, as frames are not: it would hide a use after
    // return.
    if (detail::recycles_frames && index < cache::class_count) {
        cache& here = detail::scratch_of_thread;
        if (here.current == cache::state::unopened) detail::open_scratch_cache();
        auto& [first, kept] = here.classes[index];
        if (here.current == cache::state::open && kept < cache::class_limit_bytes) {
            first = ::new (static_cast<void*>(memory)) cache::block{.next = first};
            kept += cache::bytes_of(index);
            return;
        }
    }
    ::operator delete(memory);
}

} // namespace runtime
} // namespace simplenet::v0
