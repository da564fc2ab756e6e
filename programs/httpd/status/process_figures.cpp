#include "httpd/status/figures.hpp"

#include <charconv>
#include <ctime>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

namespace httpd {

namespace {

/// A file of /proc, up to 4 KiB; empty if it cannot be read.
std::string read_file(const char* path) {
    std::string text(4096, '\0');
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    const auto count = file < 0 ? -1 : ::read(file, text.data(), text.size());
    if (file >= 0) ::close(file);
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return text;
}

/// The number at a place of a list with spaces, from 0; 0 if there is none.
std::uint64_t number_at(std::string_view text, unsigned place) noexcept {
    for (; place > 0; --place) {
        const auto space = text.find(' ');
        if (space == std::string_view::npos) return 0;
        text.remove_prefix(space + 1);
    }
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::uint64_t count_descriptors() noexcept {
    ::DIR* const directory = ::opendir("/proc/self/fd");
    if (directory == nullptr) return 0;
    std::uint64_t count = 0;
    while (const ::dirent* const entry = ::readdir(directory)) // NOLINT(concurrency-mt-unsafe)
        if (entry->d_name[0] != '.') ++count;
    ::closedir(directory);
    return count - 1; // without the one of the directory
}

std::chrono::nanoseconds duration_of(const ::timeval& time) noexcept {
    return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
}

/// From field 22 of proc_pid_stat(5), in ticks since the machine was booted.
std::chrono::system_clock::time_point start_time() {
    const auto text = read_file("/proc/self/stat");
    // The name of the program, in parentheses, may contain anything.
    const auto name_end = text.rfind(')');
    if (name_end == std::string::npos) return {};
    const auto ticks = number_at(std::string_view{text}.substr(name_end + 2), 22 - 3);
    const auto tick = std::chrono::nanoseconds{std::chrono::seconds{1}} / ::sysconf(_SC_CLK_TCK);
    ::timespec since_boot{};
    ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
    const auto age = std::chrono::seconds{since_boot.tv_sec} +
                     std::chrono::nanoseconds{since_boot.tv_nsec} -
                     tick * static_cast<std::int64_t>(ticks);
    return std::chrono::system_clock::now() -
           std::chrono::duration_cast<std::chrono::system_clock::duration>(age);
}

} // namespace

process_figures read_process_figures() {
    process_figures made;
    made.resident_bytes = number_at(read_file("/proc/self/statm"), 1) *
                          static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    made.descriptors = count_descriptors();
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) made.descriptor_limit = limit.rlim_cur;
    ::rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0)
        made.cpu_time = duration_of(usage.ru_utime) + duration_of(usage.ru_stime);
    // Read once: it does not change, but both clocks may be set.
    static const auto started = start_time();
    made.started = started;
    return made;
}

} // namespace httpd
