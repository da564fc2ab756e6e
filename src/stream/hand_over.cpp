#include <simplenet/stream/hand_over.hpp>

#include "io/io_queue.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/io/detail/stream_access.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <memory>

namespace simplenet::v0::detail {

travelling_stream::~travelling_stream() {
    if (socket_ && !unread_.empty()) static_cast<void>(sys::disconnect(socket_.get()));
}

void travelling_stream::take(socket_record& from) {
    io_queue::take_unread(from, unread_);
    read_error_ = from.read_error();
    write_told_ = from.write_told;
    end_told_ = from.end_told;
    aborts_ = from.aborts;
    if (from.idle) idle_limit_ = from.idle->limit;
    socket_.reset(std::exchange(from.fd, -1));
}

result<bool> travelling_stream::leave_at_once(tcp_stream& stream) {
    socket_record* const record = stream_access::record_of(stream);
    SIMPLENET_EXPECTS(record != nullptr, "a stream was handed over that was moved from");
    if (!record->is_open() || record->fd < 0) return fail(std::errc::bad_file_descriptor);
    SIMPLENET_EXPECTS(!record->waits(), "a stream was handed over with an operation in flight");
    if (record->home != nullptr) {
        SIMPLENET_EXPECTS(record->home == run_queue::current(),
                          "a socket belongs to the loop that used it first: hand it over there");
        record->home->release(*record);
        if (!record->is_over()) return false;
    }
    take(*record);
    return true;
}

task<result<>> travelling_stream::leave(tcp_stream stream) {
    socket_record& record = *stream_access::record_of(stream);
    const auto closed = co_await shield(closed_operation{&record});
    if (!closed) co_return fail(closed); // the end of the loop; see release()
    take(record);
    co_return result<>{};
}

tcp_stream travelling_stream::arrive() {
    auto brought = unread_.empty() ? nullptr : std::make_unique<brought_bytes>();
    auto socket = socket_access::make<nonblocking::tcp_stream>(std::move(socket_));
    socket_access::expect_read_error(socket, read_error_);
    tcp_stream stream{std::move(socket)};
    socket_record& record = *stream_access::record_of(stream);
    record.write_told = write_told_;
    record.end_told = end_told_;
    record.aborts = aborts_;
    if (brought) {
        brought->bytes = std::move(unread_);
        record.brought = std::move(brought);
        record.readable = true;
    }
    if (idle_limit_ > std::chrono::nanoseconds::zero()) stream.set_idle_timeout(idle_limit_);
    return stream;
}

} // namespace simplenet::v0::detail
