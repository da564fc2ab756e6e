#include "httpd/log/ring.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <algorithm>
#include <bit>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace httpd {

namespace {

// Both functions replace addresses that are reserved.

/// By mremap(2), which maps shared memory once more if the old size is 0.
bool map_anonymous_twice(char* base, std::size_t size) noexcept {
    constexpr int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED;
    return ::mmap(base, size, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED &&
           ::mremap(base, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, base + size) != MAP_FAILED;
}

/// Where that is not offered, as under valgrind. Not the first choice: it needs a descriptor, and a
/// size beyond RLIMIT_FSIZE raises SIGXFSZ.
bool map_file_twice(char* base, std::size_t size) noexcept {
    const simplenet::unique_fd memory{::memfd_create("log", MFD_CLOEXEC)};
    if (!memory || ::ftruncate(memory.get(), static_cast<::off_t>(size)) != 0) return false;
    const auto map = [&](char* at) {
        constexpr int flags = MAP_SHARED | MAP_FIXED;
        return ::mmap(at, size, PROT_READ | PROT_WRITE, flags, memory.get(), 0) != MAP_FAILED;
    };
    return map(base) && map(base + size);
}

} // namespace

std::unique_ptr<ring> ring::create(std::size_t capacity) noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    capacity = std::bit_ceil(std::max(capacity, page));

    void* const both = ::mmap(nullptr, 2 * capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED) return nullptr;
    char* const base = static_cast<char*>(both);
    if (!map_anonymous_twice(base, capacity) && !map_file_twice(base, capacity)) {
        ::munmap(base, 2 * capacity);
        return nullptr;
    }

    auto* const made = new (std::nothrow) ring{base, capacity};
    if (made == nullptr) ::munmap(base, 2 * capacity);
    return std::unique_ptr<ring>{made};
}

ring::~ring() {
    ::munmap(base_, 2 * capacity_);
}

} // namespace httpd
