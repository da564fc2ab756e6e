#include <simplenet/stream/send_file.hpp>

#include "sys/calls.hpp"

namespace simplenet::v0::detail {

bool is_refusal(std::error_code code) noexcept {
    return code.category() == std::system_category() && sys::is_refusal(-code.value());
}

result<std::size_t> read_file(int fd, std::uint64_t offset, mutable_buffer into) noexcept {
    return sys::to_count(sys::pread(fd, into.data(), into.size(), static_cast<off_t>(offset)));
}

} // namespace simplenet::v0::detail
