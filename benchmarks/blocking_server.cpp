// Echo with blocking calls, one connection at a time: our blocking layer, Boost.Asio's synchronous
// calls, or the bare system calls.
//
//   --library ours|asio|bare, and the options of server_options.hpp

#include "server_options.hpp"

#include <simplenet/simplenet.hpp>

#include <cstddef>
#include <cstdio>
#include <string_view>
#include <vector>

#include <unistd.h>

#if __has_include(<boost/asio.hpp>)
#include <boost/asio.hpp>
#define HAS_ASIO 1
#endif

using namespace simplenet;

namespace {

void serve_ours(std::uint16_t port, std::size_t size) {
    auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(port)));
    bench::print_port(or_throw(listener.local_endpoint()).port());
    std::vector<std::byte> buffer(size);
    while (auto stream = listener.accept()) {
        or_throw(stream->set_no_delay(true));
        while (auto count = stream->read_some(buffer)) {
            if (!stream->write_all(const_buffer{buffer.data(), *count})) break;
        }
    }
}

void serve_bare(std::uint16_t port, std::size_t size) {
    const int listener = bench::listen_on_loopback(port, 0);
    std::vector<char> buffer(size);
    while (true) {
        const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        bench::set_no_delay(fd);
        ssize_t count = 0;
        while ((count = ::recv(fd, buffer.data(), size, 0)) > 0) {
            ssize_t done = 0;
            while (done < count) {
                const ssize_t sent = ::send(fd, buffer.data() + done,
                                            static_cast<std::size_t>(count - done), MSG_NOSIGNAL);
                if (sent < 0) break;
                done += sent;
            }
            if (done < count) break;
        }
        ::close(fd);
    }
}

#ifdef HAS_ASIO
void serve_asio(std::uint16_t port, std::size_t size) {
    namespace asio = boost::asio;
    using asio::ip::tcp;
    asio::io_context context{1};
    tcp::acceptor listener{context, {asio::ip::address_v4::loopback(), port}};
    bench::print_port(listener.local_endpoint().port());
    std::vector<std::byte> buffer(size);
    while (true) {
        tcp::socket stream = listener.accept();
        stream.set_option(tcp::no_delay{true});
        boost::system::error_code error;
        while (true) {
            const std::size_t count = stream.read_some(asio::buffer(buffer), error);
            if (error) break;
            asio::write(stream, asio::buffer(buffer.data(), count), error);
            if (error) break;
        }
    }
}
#endif

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const std::string_view library = given.text("library", "ours");
    const auto how = bench::server_options::read(given, "none", {"echo"});
    given.done();
    if (library == "ours") {
        serve_ours(how.port, how.buffer);
    } else if (library == "bare") {
        serve_bare(how.port, how.buffer);
#ifdef HAS_ASIO
    } else if (library == "asio") {
        serve_asio(how.port, how.buffer);
#endif
    } else {
        std::fprintf(stderr, "no Boost.Asio in this build\n");
        return 2;
    }
}
