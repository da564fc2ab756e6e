#include <simplenet/io/detail/splice_operations.hpp>

#include "io/attempts.hpp"
#include "io/io_queue.hpp"

#include <simplenet/io/detail/stream_operations.hpp>

#include <cerrno>
#include <cstddef>

namespace simplenet::v0::detail {

result<std::size_t> splice_ready(socket_record& of, int into, std::size_t most) noexcept {
    run_queue& queue = run_queue::require_current();
    // Must not overtake bytes that were received ahead, nor run while the kernel receives ahead.
    const bool apart = of.open_on == &queue && of.reader == nullptr && of.ahead.empty() &&
                       !of.brought && of.end == 0 && of.kernel_references == 0;
    if (!apart || !queue.take_inline_turn()) return fail(std::errc::operation_would_block);
    const ssize_t count = sys::splice_into_pipe(of.fd, into, most);
    // splice(2) also returns EAGAIN at an urgent byte, even if more data follows: then leave it to
    // recv(2).
    if (count == -EAGAIN && !of.reads_to_the_end) of.readable = false;
    // The next read reports the end, and moves the bytes if splice(2) is refused.
    if (count == 0 || count == -EAGAIN || sys::is_refusal(count))
        return fail(std::errc::operation_would_block);
    if (count < 0) return fail(sys::error_from(count));
    of.home->touch(of);
    return static_cast<std::size_t>(count);
}

bool send_pipe_operation::perform() noexcept {
    const ssize_t count = sys::splice_from_pipe(pipe_, record->fd, size - moved);
    if (count < 0) return send_failed(*this, count);
    moved += static_cast<std::size_t>(count);
    record->home->worked_long();
    return moved == size;
}

const char* send_pipe_operation::name() const noexcept {
    return "async_copy";
}

} // namespace simplenet::v0::detail
