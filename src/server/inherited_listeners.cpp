#include <simplenet/server/inherited_listeners.hpp>

#include "ip/text.hpp"
#include "sys/calls.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace simplenet::v0 {

namespace {

constexpr int first_inherited = 3; // SD_LISTEN_FDS_START

/// The process that has taken its sockets. Its forked children may be passed their own.
constinit std::atomic<pid_t> taken_by = 0;

std::optional<std::string_view> variable(const char* name) noexcept {
    const char* const text = std::getenv(name);
    return text == nullptr ? std::nullopt : std::optional<std::string_view>{text};
}

/// The number of descriptors for this process.
result<int> number_of_descriptors() noexcept {
    constexpr std::uint32_t largest = std::numeric_limits<int>::max() - first_inherited;

    const auto pid_text = variable("LISTEN_PID");
    const auto count_text = variable("LISTEN_FDS");
    if (!pid_text || !count_text) return 0;
    const auto pid = detail::parse_decimal(*pid_text, std::numeric_limits<pid_t>::max());
    if (!pid) return fail(std::errc::invalid_argument);
    if (static_cast<pid_t>(*pid) != ::getpid()) return 0;
    const auto count = detail::parse_decimal(*count_text, largest);
    if (!count) return fail(std::errc::invalid_argument);
    return static_cast<int>(*count);
}

result<> check_kind(int fd) noexcept {
    int type = 0;
    int listens = 0;
    for (const auto& [name, value] :
         {std::pair{SO_TYPE, &type}, std::pair{SO_ACCEPTCONN, &listens}}) {
        const int got = detail::sys::get_option(fd, SOL_SOCKET, name, *value); // ENOTSOCK, EBADF
        if (got < 0) return detail::sys::to_result(got);
    }
    if (type != SOCK_DGRAM && listens == 0) return fail(std::errc::invalid_argument);
    return {};
}

/// Empty names for as many descriptors as have one, without descriptors.
result<std::vector<inherited_listener>> named_listeners(std::size_t count) {
    std::vector<inherited_listener> listeners;
    listeners.reserve(count);
    const auto names = variable("LISTEN_FDNAMES");
    if (!names) {
        while (listeners.size() < count)
            listeners.push_back({.name = "unknown", .socket = {}});
        return listeners;
    }
    for (std::string_view rest = *names;;) {
        const std::size_t colon = rest.find(':');
        if (listeners.size() == count) return fail(std::errc::invalid_argument);
        listeners.push_back({.name = std::string{rest.substr(0, colon)}, .socket = {}});
        if (colon == rest.npos) break;
        rest.remove_prefix(colon + 1);
    }
    if (listeners.size() != count) return fail(std::errc::invalid_argument);
    return listeners;
}

/// `before`: who has taken them before this process.
result<std::vector<inherited_listener>> take_for(pid_t self, pid_t before) {
    const auto count = number_of_descriptors();
    if (!count) return fail(count);
    // Everything that can fail comes before the descriptors are taken.
    for (int fd = first_inherited; fd - first_inherited < *count; ++fd) {
        if (const auto checked = check_kind(fd); !checked) return fail(checked);
    }
    if (*count == 0) return {};
    auto listeners = named_listeners(static_cast<std::size_t>(*count));
    if (!listeners) return listeners;
    for (int fd = first_inherited; fd - first_inherited < *count; ++fd) {
        const auto set = detail::sys::to_result(detail::sys::set_close_on_exec(fd));
        if (!set) return fail(set);
    }

    if (!taken_by.compare_exchange_strong(before, self, std::memory_order_relaxed)) return {};
    int fd = first_inherited;
    for (inherited_listener& each : *listeners)
        each.socket.reset(fd++);
    return listeners;
}

} // namespace

result<std::vector<inherited_listener>> inherited_listeners() {
    const pid_t self = ::getpid();
    const pid_t before = taken_by.load(std::memory_order_relaxed);
    if (before == self) return {};

    auto taken = take_for(self, before);
    // If another call has taken them meanwhile, they may be closed, or their numbers in other use.
    if (!taken && taken_by.load(std::memory_order_relaxed) == self) return {};
    return taken;
}

} // namespace simplenet::v0
