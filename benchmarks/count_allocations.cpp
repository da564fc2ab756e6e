// Loaded into a server with LD_PRELOAD, counts its allocations: malloc(3) and its relatives, from
// any language. The count is in the file named by COUNT_ALLOCATIONS (8 bytes, created by the
// reader), so it can be read at any time and outlives a killed server.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

// glibc's own names for the functions replaced here.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

std::uint64_t before_the_file;
std::uint64_t* count = &before_the_file;

void add_one() {
    std::atomic_ref{*count}.fetch_add(1, std::memory_order_relaxed);
}

[[gnu::constructor]] void map_the_file() {
    const char* const name = std::getenv("COUNT_ALLOCATIONS");
    if (name == nullptr) return;
    const int fd = ::open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void* const place = ::mmap(nullptr, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (place != MAP_FAILED) count = static_cast<std::uint64_t*>(place);
}

} // namespace

extern "C" {

void* malloc(std::size_t size) {
    add_one();
    return __libc_malloc(size);
}
void* calloc(std::size_t many, std::size_t size) {
    add_one();
    return __libc_calloc(many, size);
}
void* realloc(void* old, std::size_t size) {
    add_one();
    return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
    add_one();
    return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    add_one();
    return __libc_memalign(alignment, size);
}
int posix_memalign(void** into, std::size_t alignment, std::size_t size) {
    add_one();
    *into = __libc_memalign(alignment, size);
    return *into == nullptr ? ENOMEM : 0;
}

} // extern "C"
