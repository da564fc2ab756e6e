// raw_relay copy|splice BYTES LISTEN TO: relays one connection in one direction with bare system
// calls. The baseline for async_copy(); BYTES is the size of the buffer or of the pipe.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

void wait_for(int fd, short events) {
    pollfd about{.fd = fd, .events = events, .revents = 0};
    ::poll(&about, 1, -1);
}

/// Repeats the call until it moves bytes or the stream ends.
template <class Call>
std::size_t moved(int fd, short events, Call call) {
    for (;;) {
        const ssize_t count = call();
        if (count >= 0) return static_cast<std::size_t>(count);
        wait_for(fd, events);
    }
}

void copy(int from, int to, std::size_t size) {
    std::vector<char> buffer(size);
    while (const std::size_t have =
               moved(from, POLLIN, [&] { return ::recv(from, buffer.data(), size, 0); })) {
        for (std::size_t done = 0; done < have;) {
            done += moved(to, POLLOUT,
                          [&] { return ::send(to, buffer.data() + done, have - done, 0); });
        }
    }
}

void splice_all(int from, int to, std::size_t size) {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK) != 0) std::abort();
    ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(size));
    constexpr unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
    while (const std::size_t have = moved(from, POLLIN, [&] {
               return ::splice(from, nullptr, ends[1], nullptr, size, flags);
           })) {
        for (std::size_t done = 0; done < have;) {
            done += moved(to, POLLOUT, [&] {
                return ::splice(ends[0], nullptr, to, nullptr, have - done, flags);
            });
        }
    }
}

sockaddr_in loopback(const char* port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
    auto here = loopback(argv[3]);
    auto there = loopback(argv[4]);
    if (::bind(listening, reinterpret_cast<sockaddr*>(&here), sizeof here) != 0) return 1;
    if (::listen(listening, 1) != 0) return 1;
    const int from = ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK);
    const int to = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(to, reinterpret_cast<sockaddr*>(&there), sizeof there) != 0) return 1;
    ::fcntl(to, F_SETFL, O_NONBLOCK);
    const std::size_t size = std::strtoul(argv[2], nullptr, 10);
    std::string_view{argv[1]} == "splice" ? splice_all(from, to, size) : copy(from, to, size);
    ::shutdown(to, SHUT_WR);
}
