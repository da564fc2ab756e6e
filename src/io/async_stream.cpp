#include <simplenet/io/async_stream.hpp>

#include "io/io_queue.hpp"
#include "socket/streams.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <memory>
#include <utility>

namespace simplenet::v0 {
inline namespace runtime {

async_stream::async_stream(stream_socket&& socket)
    : async_stream{detail::socket_access::read_error(socket), std::move(socket).release()} {}

async_stream::async_stream(int read_error, unique_fd socket)
    : async_socket{std::move(socket)} {
    if (read_error == 0) return;
    record()->zero_means = static_cast<std::int16_t>(read_error);
    record()->write_told = true; // the kernel has nothing left for a write
}

detail::ready_result async_stream::shutdown_write() noexcept {
    return detail::streams::shutdown_write(native_handle());
}

void async_stream::set_idle_limit(std::chrono::nanoseconds limit) {
    detail::socket_record* const of = record();
    SIMPLENET_EXPECTS(of != nullptr, "an idle timeout for a socket that was moved from");
    if (!of->idle) {
        if (limit <= std::chrono::nanoseconds::zero()) return; // there was none
        of->idle = std::make_unique<detail::idle_state>(*of);
    }
    of->idle->limit = limit;
    if (of->home == nullptr) return;
    of->home->timers.cancel(*of->idle);
    if (of->waits()) of->home->touch(*of);
}

} // namespace runtime
} // namespace simplenet::v0
