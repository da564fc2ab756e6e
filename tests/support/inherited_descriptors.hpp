#pragma once
// inherited_descriptors: processes that were passed descriptors like a service that a manager has
// activated.

#include "child_process.hpp"
#include "raw_peer.hpp"

#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/server/inherited_listeners.hpp>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace simplenet::v0::testing {

inline unique_fd tcp_listening() {
    return or_throw(blocking::tcp_listener::bind(endpoint::loopback(0))).release();
}

inline std::string described(std::error_code error) {
    for (const auto& [known, name] : {std::pair{std::errc::invalid_argument, "invalid argument"},
                                      std::pair{std::errc::bad_file_descriptor, "bad descriptor"},
                                      std::pair{std::errc::not_a_socket, "no socket"}}) {
        if (error == known) return name;
    }
    return error.message();
}
/// The names and numbers of what inherited_listeners() returns, and keeps it open.
inline std::string inherited() {
    static std::vector<inherited_listener> kept;
    auto found = inherited_listeners();
    if (!found) return described(found.error());
    if (found->empty()) return "none";
    std::string text;
    for (inherited_listener& each : *found) {
        text += each.name + '=' + std::to_string(each.socket.get()) + ' ';
        kept.push_back(std::move(each));
    }
    text.pop_back();
    return text;
}

inline void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);
}
inline void set_pid_and_count(std::size_t count) {
    set("LISTEN_PID", std::to_string(::getpid()));
    set("LISTEN_FDS", std::to_string(count));
}

/// What `body()` returns in a child in which `passed` have the numbers 3, 4 and so on, and no
/// descriptor follows them.
inline std::string in_child(const std::vector<unique_fd>& passed,
                            std::function<std::string()> body) {
    int ends[2];
    checked(::pipe2(ends, O_CLOEXEC));
    const unique_fd from{ends[0]};
    unique_fd to{ends[1]};
    child_process child{[&] {
        for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
            ::unsetenv(name);
        const int answer = ::fcntl(to.get(), F_DUPFD_CLOEXEC, 200);
        std::vector<int> copies;
        for (const unique_fd& each : passed)
            copies.push_back(::fcntl(each.get(), F_DUPFD_CLOEXEC, 100));
        for (int fd = 3; fd < 100; ++fd)
            ::close(fd);
        for (std::size_t each = 0; each < copies.size(); ++each)
            checked(::dup2(copies[each], static_cast<int>(3 + each))); // not closed on exec
        const std::string text = body();
        return ::write(answer, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0
                                                                                              : 1;
    }};
    to.reset();
    std::string text;
    std::array<char, 4096> part;
    for (ssize_t count = 0; (count = ::read(from.get(), part.data(), part.size())) > 0;)
        text.append(part.data(), static_cast<std::size_t>(count));
    EXPECT_EQ(child.end(), "status 0");
    return text;
}

template <class... Fds>
std::vector<unique_fd> passing(Fds... fds) {
    std::vector<unique_fd> all;
    (all.push_back(std::move(fds)), ...);
    return all;
}

} // namespace simplenet::v0::testing
