#pragma once
// spool_file: a file without a name, for bodies that do not fit into memory. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

/// What is copied to a file or from one at a time.
inline constexpr std::size_t spool_block = std::size_t{64} * 1024;

/// TMPDIR, or /tmp.
[[nodiscard]] std::string default_temporary_directory();

/// Gone with this object, or with the process, however that ends.
///
/// Its functions block: they are for run_blocking(). Reads may run beside each other and beside
/// a write, once the first write has ended.
class spool_file {
public:
    explicit spool_file(std::string_view directory)
        : directory_{directory} {}

    /// Writes all of `from`. The first call makes the file.
    ///
    /// @par Errors
    /// What open(2) and pwrite(2) report.
    [[nodiscard]] result<> write(std::uint64_t offset, const_buffer from);
    /// Fills `into`.
    ///
    /// @par Errors
    /// What pread(2) reports; `std::errc::io_error`: the file is shorter.
    [[nodiscard]] result<> read(std::uint64_t offset, mutable_buffer into) const;
    /// Gives all of the disk back. Beside no other call.
    ///
    /// @par Errors
    /// What ftruncate(2) reports.
    [[nodiscard]] result<> clear();

private:
    std::string directory_;
    unique_fd fd_;
};

} // namespace simplenet::v0::http::detail
