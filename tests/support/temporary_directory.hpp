#pragma once
// temporary_directory: a new directory that is deleted with everything in it.

#include <filesystem>
#include <string>
#include <string_view>

#include <cstdlib>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

class temporary_directory {
public:
    temporary_directory() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "simplenet.XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    /// The path of `name` in this directory.
    std::string operator/(std::string_view name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

} // namespace simplenet::v0::testing
