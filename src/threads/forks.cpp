#include "threads/forks.hpp"

#include "threads/posting_queue.hpp"

#include <atomic>
#include <cstddef>
#include <new>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simplenet::v0::detail {

namespace {

// Numbers only grow from parent to child, so none repeats among a process's ancestors. A process id
// can: the first process of each pid namespace is 1.
constinit std::atomic<unsigned> latest = 0;
constinit std::atomic<unsigned> kept_by_children = 0;

void in_child() noexcept;

/// The number of this process, in a page that the kernel wipes in a child (MADV_WIPEONFORK, Linux
/// 4.14). Sandboxes create children with clone(2) or _Fork(3), which run no handler of
/// pthread_atfork(3); without such a page the handler has to do.
std::atomic<unsigned>& make_place() noexcept {
    ::pthread_atfork(nullptr, nullptr, in_child);
    const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const int how = MAP_PRIVATE | MAP_ANONYMOUS;
    void* const page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, how, -1, 0);
    if (page == MAP_FAILED) return kept_by_children;
    if (::madvise(page, size, MADV_WIPEONFORK) != 0) {
        ::munmap(page, size);
        return kept_by_children;
    }
    return *::new (page) std::atomic<unsigned>{0};
}

std::atomic<unsigned>& place() noexcept {
    static std::atomic<unsigned>& made = make_place();
    return made;
}

void in_child() noexcept {
    place() = ++latest;
    if (run_queue* const running = run_queue::current()) posting_queue::of(*running).forked();
}

} // namespace

unsigned fork_generation() noexcept {
    std::atomic<unsigned>& here = place();
    unsigned number = here.load(std::memory_order_relaxed);
    if (number == 0) [[unlikely]] {
        // The first call, or the first in a child: one of several threads sets the number.
        const unsigned next = ++latest;
        if (here.compare_exchange_strong(number, next)) number = next;
    }
    return number;
}

} // namespace simplenet::v0::detail
