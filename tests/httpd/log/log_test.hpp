#pragma once
// What the tests of both logs use: files that are read back, and disks that are full.

#include "support/temporary_directory.hpp"

#include <chrono>
#include <concepts>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace httpd::testing {

/// The lines of a file; one without an end has none here either.
inline std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file{path};
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(file.eof() ? line + "<no end>" : line);
    return lines;
}

template <std::predicate Condition>
[[nodiscard]] bool eventually(Condition condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!condition()) {
        if (std::chrono::steady_clock::now() > limit) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
}

inline std::size_t size_of(const std::string& path) {
    std::error_code none;
    const auto size = std::filesystem::file_size(path, none);
    return none ? 0 : static_cast<std::size_t>(size);
}

/// While it lives no file of this process can become larger: like a full disk, it makes writes
/// short, and then fail. (A signal comes too, which would end the process.)
class full_disk {
public:
    explicit full_disk(std::size_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const ::rlimit small{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &small);
    }
    full_disk(const full_disk&) = delete;
    full_disk& operator=(const full_disk&) = delete;
    ~full_disk() { end(); }
    void end() { ::setrlimit(RLIMIT_FSIZE, &before_); }

private:
    ::rlimit before_{};
};

/// A pipe with a path to its writing end.
class readable_pipe {
public:
    readable_pipe() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
    readable_pipe(const readable_pipe&) = delete;
    readable_pipe& operator=(const readable_pipe&) = delete;
    ~readable_pipe() {
        close_reader();
        close_writer();
    }

    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[1]); }
    void close_reader() { close(ends_[0]); }
    void close_writer() { close(ends_[1]); }
    /// Reads until all writers have closed it.
    [[nodiscard]] std::string read_all() const {
        std::string all;
        char some[4096];
        for (::ssize_t count = 0; (count = ::read(ends_[0], some, sizeof some)) > 0;)
            all.append(some, static_cast<std::size_t>(count));
        return all;
    }

private:
    static void close(int& end) {
        if (end >= 0) ::close(end);
        end = -1;
    }

    int ends_[2] = {-1, -1};
};

} // namespace httpd::testing
