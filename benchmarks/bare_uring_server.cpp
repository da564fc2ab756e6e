// Echo with io_uring alone, replies by send(2): see bare_ring.hpp.

#include "bare_ring.hpp"
#include "server_options.hpp"

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include <sys/socket.h>

namespace {

class server {
public:
    explicit server(bench::bare_ring& ring)
        : ring_{ring} {}

    void received(int fd, std::string_view bytes) { reply(fd, bytes.data(), bytes.size()); }
    void writable(int fd) { flush(fd); }
    void ended(int fd) { unsent_.erase(fd); }

private:
    void reply(int fd, const char* bytes, std::size_t size) {
        if (!unsent_.empty()) {
            if (const auto found = unsent_.find(fd); found != unsent_.end()) {
                found->second.append(bytes, size);
                return;
            }
        }
        const ssize_t sent = ::send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        const std::size_t gone = sent > 0 ? static_cast<std::size_t>(sent) : 0;
        if (gone == size || (sent < 0 && errno != EAGAIN)) return;
        unsent_[fd].assign(bytes + gone, size - gone);
        ring_.wait_writable(fd);
    }

    void flush(int fd) {
        const auto found = unsent_.find(fd);
        if (found == unsent_.end()) return;
        std::string& left = found->second;
        const ssize_t sent = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) left.erase(0, static_cast<std::size_t>(sent));
        if (left.empty() || (sent < 0 && errno != EAGAIN)) {
            unsent_.erase(found);
        } else {
            ring_.wait_writable(fd);
        }
    }

    bench::bare_ring& ring_;
    std::unordered_map<int, std::string> unsent_; // only bytes that the kernel did not take at once
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto how = bench::server_options::read(given, "io_uring", {"echo"});
    given.done();
    bench::bare_ring ring{bench::listen_on_loopback(how.port, 0), how.buffer};
    server answers{ring};
    ring.run(answers);
}
