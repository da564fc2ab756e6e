#include <simplenet/stream/send_file.hpp>

#include "sys/calls.hpp"

namespace simplenet::v0::detail {

bool is_refusal(std::error_code code) noexcept {
    return code.category() == std::system_category() && sys::is_refusal(-code.value());
}

result<std::size_t> read_file(int fd, std::uint64_t offset, mutable_buffer into) noexcept {
    return sys::to_count(sys::pread(fd, into.data(), into.size(), static_cast<off_t>(offset)));
}

result<std::uint64_t> bytes_behind(int fd, std::uint64_t offset) noexcept {
    const std::int64_t size = sys::file_size(fd);
    // A file that is made up as it is read has a size of 0.
    if (size < 0 || static_cast<std::uint64_t>(size) <= offset) return fail(errc::end_of_stream);
    return static_cast<std::uint64_t>(size) - offset;
}

} // namespace simplenet::v0::detail
