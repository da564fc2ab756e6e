#pragma once
// file_tree: a directory to serve, and one outside of it that must never be served.

#include "http/files/open_beneath.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <cstddef>
#include <unistd.h>

namespace simplenet::v0::http::detail {

class file_tree {
public:
    file_tree() {
        for (const char* const name : {"root", "outside"})
            std::filesystem::create_directory(top_ / name);
        write("../outside/secret", "outside");
        root_ = or_throw(open_root(path("")));
    }

    /// The path of a name beneath the root.
    [[nodiscard]] std::string path(std::string_view name) const {
        return (top_ / "root/").append(name);
    }
    /// Creates a file and its directories, or overwrites it.
    void write(std::string_view name, std::string_view text) const {
        const std::filesystem::path where = path(name);
        std::filesystem::create_directories(where.parent_path());
        std::ofstream{where, std::ios::binary} << text;
    }
    void link(std::string_view name, std::string_view target) const {
        std::filesystem::create_symlink(target, path(name));
    }
    void directory(std::string_view name) const { std::filesystem::create_directories(path(name)); }
    void rename(std::string_view from, std::string_view to) const {
        std::filesystem::rename(path(from), path(to));
    }

    [[nodiscard]] int root() const noexcept { return root_.get(); }

private:
    testing::temporary_directory top_;
    unique_fd root_;
};

/// Up to 64 bytes of a file.
inline std::string text_of(int fd) {
    std::array<char, 64> bytes{};
    const ssize_t count = ::pread(fd, bytes.data(), bytes.size(), 0);
    if (count < 0) return "unreadable";
    return {bytes.data(), static_cast<std::size_t>(count)};
}

} // namespace simplenet::v0::http::detail
