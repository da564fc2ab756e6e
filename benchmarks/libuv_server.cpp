// Echo, or a source of bytes, with libuv: its callbacks, one loop, one buffer for each connection.
// Replies are tried with uv_try_write() first, which is its fast way.

#include "server_options.hpp"

#include <uv.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace {

std::size_t buffer_size = 4096;
std::string block_bytes; // written by a source; empty: this is an echo server

struct connection {
    uv_tcp_t handle{};
    uv_write_t request{};
    std::string unsent;
    std::unique_ptr<char[]> buffer = std::make_unique<char[]>(buffer_size);
};

connection& of(uv_handle_t* handle) {
    return *static_cast<connection*>(handle->data);
}
uv_stream_t* stream_of(connection& which) {
    return reinterpret_cast<uv_stream_t*>(&which.handle);
}

void end(connection& which) {
    auto* const handle = reinterpret_cast<uv_handle_t*>(&which.handle);
    if (uv_is_closing(handle) != 0) return;
    uv_close(handle, [](uv_handle_t* closed) { delete &of(closed); });
}

void allocate(uv_handle_t* handle, std::size_t, uv_buf_t* into) {
    *into = uv_buf_init(of(handle).buffer.get(), static_cast<unsigned>(buffer_size));
}

void have_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* from) {
    connection& which = of(reinterpret_cast<uv_handle_t*>(stream));
    if (count == 0) return;
    if (count < 0) return end(which);
    uv_buf_t reply = uv_buf_init(from->base, static_cast<unsigned>(count));
    const int sent = uv_try_write(stream, &reply, 1);
    if (sent == count) return;
    if (sent < 0 && sent != UV_EAGAIN) return end(which);
    const auto gone = static_cast<std::size_t>(sent < 0 ? 0 : sent);
    which.unsent.assign(from->base + gone, static_cast<std::size_t>(count) - gone);
    uv_buf_t rest = uv_buf_init(which.unsent.data(), static_cast<unsigned>(which.unsent.size()));
    uv_read_stop(stream); // at most one message in flight, as in the other servers
    which.request.data = &which;
    uv_write(&which.request, stream, &rest, 1, [](uv_write_t* request, int error) {
        connection& written = *static_cast<connection*>(request->data);
        if (error != 0) return end(written);
        uv_read_start(stream_of(written), allocate, have_read);
    });
}

/// Writes blocks as long as the peer reads: the next one when the kernel has taken this one.
void write_block(connection& which) {
    uv_buf_t block = uv_buf_init(block_bytes.data(), static_cast<unsigned>(block_bytes.size()));
    uv_write(&which.request, stream_of(which), &block, 1, [](uv_write_t* request, int error) {
        connection& written = *static_cast<connection*>(request->data);
        if (error != 0) return end(written);
        write_block(written);
    });
}

void accept_one(uv_stream_t* listener, int error) {
    if (error != 0) return;
    auto* const which = new connection;
    uv_tcp_init(listener->loop, &which->handle);
    which->handle.data = which;
    if (uv_accept(listener, stream_of(*which)) != 0) return end(*which);
    uv_tcp_nodelay(&which->handle, 1);
    which->request.data = which;
    if (!block_bytes.empty()) return write_block(*which);
    uv_read_start(stream_of(*which), allocate, have_read);
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto how = bench::server_options::read(given, "epoll", {"echo", "source"});
    given.done();
    buffer_size = how.buffer;
    if (how.mode == "source") block_bytes.assign(how.block, 'x');

    uv_loop_t* const loop = uv_default_loop();
    uv_tcp_t listener;
    uv_tcp_init(loop, &listener);
    sockaddr_in at{};
    uv_ip4_addr("127.0.0.1", how.port, &at);
    if (uv_tcp_bind(&listener, reinterpret_cast<const sockaddr*>(&at), 0) != 0) return 1;
    if (uv_listen(reinterpret_cast<uv_stream_t*>(&listener), 4096, accept_one) != 0) return 1;
    int size = sizeof at;
    uv_tcp_getsockname(&listener, reinterpret_cast<sockaddr*>(&at), &size);
    bench::print_port(ntohs(at.sin_port));
    return uv_run(loop, UV_RUN_DEFAULT);
}
