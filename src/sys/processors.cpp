#include "sys/processors.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include <sched.h>

namespace simplenet::v0::detail::sys {

namespace {

struct free_mask {
    void operator()(cpu_set_t* mask) const noexcept { CPU_FREE(mask); }
};
using processor_mask = std::unique_ptr<cpu_set_t, free_mask>;

constexpr unsigned most_processors = 1U << 20;

// --- control groups ------------------------------------------------------------------------------

enum class cgroup_version : std::uint8_t { one, two };

/// A hierarchy of control groups in the file system.
struct hierarchy {
    cgroup_version version;
    std::string group; // the group that the mount point shows, from the root of the hierarchy
    std::string mounted_at;
};

std::vector<std::string> lines_of(const std::string& path) {
    std::vector<std::string> lines;
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    return lines;
}

std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words;
    std::istringstream stream{line};
    for (std::string word; stream >> word;)
        words.push_back(word);
    return words;
}

bool names_cpu(std::string_view list) noexcept {
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        if (list.substr(0, end) == "cpu") return true;
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return false;
}

/// mountinfo writes a space as \040 (proc(5)).
std::string unescaped(std::string_view text) {
    std::string plain;
    while (!text.empty()) {
        unsigned code = 0;
        if (text.front() == '\\' && text.size() >= 4 &&
            std::from_chars(text.data() + 1, text.data() + 4, code, 8).ptr == text.data() + 4) {
            plain += static_cast<char>(code);
            text.remove_prefix(4);
        } else {
            plain += text.front();
            text.remove_prefix(1);
        }
    }
    return plain;
}

std::vector<hierarchy> hierarchies(const std::string& root) {
    // Where they are by convention, whatever mountinfo says: a sandbox may hide it.
    std::vector<hierarchy> found{{cgroup_version::two, "/", "/sys/fs/cgroup"},
                                 {cgroup_version::one, "/", "/sys/fs/cgroup/cpu"},
                                 {cgroup_version::one, "/", "/sys/fs/cgroup/cpu,cpuacct"}};
    for (const std::string& line : lines_of(root + "/proc/self/mountinfo")) {
        // 36 35 98:0 /group /place options [more ...] - type source options
        const std::vector<std::string> words = words_of(line);
        const auto dash = std::ranges::find(words, "-");
        if (words.size() < 7 || words.end() - dash < 4) continue;
        const std::string& type = dash[1];
        if (type != "cgroup2" && (type != "cgroup" || !names_cpu(dash[3]))) continue;
        const auto version = type == "cgroup2" ? cgroup_version::two : cgroup_version::one;
        found.push_back({version, unescaped(words[3]), unescaped(words[4])});
    }
    return found;
}

/// The path of the process's group in a hierarchy with the cpu controller.
std::optional<std::string> own_group(const std::string& root, cgroup_version version) {
    for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
        // 4:cpu,cpuacct:/group, and 0::/group for version 2
        const std::size_t first = line.find(':');
        const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::string_view controllers =
            std::string_view{line}.substr(first + 1, second - first - 1);
        const bool matches =
            version == cgroup_version::two ? controllers.empty() : names_cpu(controllers);
        if (matches) return line.substr(second + 1);
    }
    return std::nullopt;
}

std::optional<std::int64_t> number(std::string_view text) noexcept {
    std::int64_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec != std::errc{}) return std::nullopt;
    return value;
}

/// The CPUs of a quota, rounded down. Empty: no limit.
std::optional<unsigned> processors_in(std::optional<std::int64_t> quota,
                                      std::optional<std::int64_t> period) noexcept {
    if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
    return static_cast<unsigned>(
        std::clamp<std::int64_t>(*quota / *period, 1, std::int64_t{most_processors}));
}

std::optional<unsigned> quota_of(cgroup_version version, const std::string& folder) {
    const auto first_line = [&](const char* name) {
        const auto lines = lines_of(folder + '/' + name);
        return lines.empty() ? std::string{} : lines.front();
    };
    if (version == cgroup_version::one) {
        return processors_in(number(first_line("cpu.cfs_quota_us")), // -1: none
                             number(first_line("cpu.cfs_period_us")));
    }
    const auto words = words_of(first_line("cpu.max")); // "150000 100000", "max 100000"
    if (words.size() < 2) return std::nullopt;
    return processors_in(number(words[0]), number(words[1]));
}

} // namespace

std::vector<unsigned> allowed_processors() {
    // The kernel refuses a mask that is smaller than its own (EINVAL).
    for (unsigned room = CPU_SETSIZE; room <= most_processors; room *= 2) {
        const processor_mask mask{CPU_ALLOC(room)};
        if (!mask) throw std::bad_alloc{};
        const std::size_t size = CPU_ALLOC_SIZE(room);
        if (::sched_getaffinity(0, size, mask.get()) != 0) {
            if (errno == EINVAL) continue;
            return {};
        }
        std::vector<unsigned> allowed;
        for (unsigned each = 0; each < room; ++each) {
            if (CPU_ISSET_S(each, size, mask.get())) allowed.push_back(each);
        }
        return allowed;
    }
    return {};
}

std::optional<unsigned> processor_quota(const std::string& root) {
    std::optional<unsigned> least;
    for (const hierarchy& each : hierarchies(root)) {
        auto group = own_group(root, each.version);
        if (!group) continue;
        // In a container that sees the whole hierarchy's paths, but mounts only its own part.
        if (each.group != "/" && group->starts_with(each.group)) group->erase(0, each.group.size());
        // From the group up to the mount point, whose path from here is empty.
        for (std::string path = *std::move(group);;) {
            while (path.ends_with('/'))
                path.pop_back();
            if (const auto quota = quota_of(each.version, root + each.mounted_at + path)) {
                least = std::min(least.value_or(*quota), *quota);
            }
            if (path.empty()) break;
            path.erase(std::min(path.rfind('/'), path.size()));
        }
    }
    return least;
}

unsigned usable_processors() {
    const std::size_t allowed = allowed_processors().size();
    const unsigned present =
        allowed != 0 ? static_cast<unsigned>(allowed) : std::thread::hardware_concurrency();
    return std::max(std::min(present, processor_quota().value_or(present)), 1U);
}

int pin_thread(pthread_t thread, unsigned processor) noexcept {
    const processor_mask mask{CPU_ALLOC(processor + 1)};
    if (!mask) return -ENOMEM;
    const std::size_t size = CPU_ALLOC_SIZE(processor + 1);
    CPU_ZERO_S(size, mask.get());
    CPU_SET_S(processor, size, mask.get());
    return -::pthread_setaffinity_np(thread, size, mask.get());
}

} // namespace simplenet::v0::detail::sys
