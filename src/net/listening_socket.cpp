#include "net/listening_socket.hpp"

#include "io/io_queue.hpp"
#include "io/socket_record.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/net/async_listener.hpp>

namespace simplenet::v0::detail {

listening_socket::listening_socket(unique_fd socket, unsigned accept_ahead)
    : async_socket{std::move(socket)} {
    become_listener(*record(), accept_ahead);
}

result<unique_fd> listening_socket::try_accept() noexcept {
    socket_record& of = *record();
    if (!of.is_open() || of.fd < 0) return fail(std::errc::bad_file_descriptor);
    io_queue& queue = io_queue::of(run_queue::require_current());
    if (of.home == nullptr) queue.bind(of);
    SIMPLENET_EXPECTS(of.home == &queue && of.reader == nullptr,
                      "try_accept() on another loop, or beside an accept()");
    accept_descriptor_operation op{&of};
    op.error = 0;
    if (!of.driver->attempt_read(op)) return fail(std::errc::operation_would_block);
    return op.await_resume();
}

void listening_socket::stop_accepting_ahead() noexcept {
    socket_record& of = *record();
    of.accepting->most_ahead = 0;
    if (of.home != nullptr && of.is_open()) of.driver->stop_accepting_ahead(of);
}

bool listening_socket::is_accepting_ahead() const noexcept {
    return record()->uring.inflow.armed();
}

bool listening_socket::is_out_of_descriptors() const noexcept {
    return record()->accepting->pausing();
}

} // namespace simplenet::v0::detail
