// libuv's side of udp_batch.cpp: datagrams one at a time, sent and received on one thread.
//
//     libuv_datagrams [bytes = 64] [datagrams in flight = 64]

#include <uv.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

constexpr std::size_t total = std::size_t{64} * 400;

std::vector<char> buffer;
std::size_t received = 0;

double seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void allocate(uv_handle_t*, std::size_t, uv_buf_t* into) {
    *into = uv_buf_init(buffer.data(), static_cast<unsigned>(buffer.size()));
}

void have_datagram(uv_udp_t*, ssize_t count, const uv_buf_t*, const sockaddr* from, unsigned) {
    if (from != nullptr && count >= 0) ++received;
}

void check(int outcome, const char* what) {
    if (outcome >= 0) return;
    std::fprintf(stderr, "%s: %s\n", what, uv_strerror(outcome));
    std::exit(1);
}

} // namespace

int main(int argc, char** argv) {
    const auto argument = [&](int at) {
        return argc > at ? std::strtoul(argv[at], nullptr, 10) : 64;
    };
    buffer.resize(argument(1));
    const std::size_t in_flight = argument(2);

    uv_loop_t* const loop = uv_default_loop();
    sockaddr_in any{};
    uv_ip4_addr("127.0.0.1", 0, &any);
    uv_udp_t from;
    uv_udp_t to;
    for (uv_udp_t* each : {&from, &to}) {
        check(uv_udp_init(loop, each), "uv_udp_init");
        check(uv_udp_bind(each, reinterpret_cast<const sockaddr*>(&any), 0), "uv_udp_bind");
    }
    sockaddr_in there{};
    int size = sizeof there;
    check(uv_udp_getsockname(&to, reinterpret_cast<sockaddr*>(&there), &size), "getsockname");
    check(uv_udp_recv_start(&to, allocate, have_datagram), "uv_udp_recv_start");

    const uv_buf_t message = uv_buf_init(buffer.data(), static_cast<unsigned>(buffer.size()));
    const auto round = [&] {
        std::size_t sent = 0;
        received = 0;
        while (sent < total) {
            for (std::size_t at = 0; at < in_flight; ++at, ++sent)
                check(uv_udp_try_send(&from, &message, 1, reinterpret_cast<sockaddr*>(&there)),
                      "uv_udp_try_send");
            while (received < sent)
                uv_run(loop, UV_RUN_ONCE);
        }
    };
    round(); // warms up
    const double before = seconds();
    round();
    std::printf("libuv_one_by_one %.0f ns a datagram\n",
                1e9 * (seconds() - before) / static_cast<double>(total));
}
