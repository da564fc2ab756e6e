#include <simplenet/io/detail/send_file_operation.hpp>

#include "io/attempts.hpp"
#include "io/io_queue.hpp"

#include <algorithm>
#include <cstddef>

namespace simplenet::v0::detail {

namespace {

/// The most bytes of a file that one turn sends: that long other tasks and the next poll wait.
constexpr std::size_t file_bytes_per_turn = std::size_t{256} * 1024;

} // namespace

bool send_file_operation::perform() noexcept {
    const std::size_t most = std::min(size - moved, file_bytes_per_turn);
    const auto at = static_cast<off_t>(offset_ + moved);
    const ssize_t count = sys::sendfile(record->fd, file_, at, most);
    if (count < 0) return send_failed(*this, count);
    if (count == 0) return true; // the file is shorter
    moved += static_cast<std::size_t>(count);
    record->home->worked_long();
    return moved == size;
}

const char* send_file_operation::name() const noexcept {
    return "async_send_file";
}

} // namespace simplenet::v0::detail
