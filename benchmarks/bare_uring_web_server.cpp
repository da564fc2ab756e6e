// The system calls of a web server alone, on io_uring: see bare_web.hpp.

#include "bare_ring.hpp"
#include "bare_web.hpp"

#include <string_view>

namespace {

class server {
public:
    server(bench::bare_ring& ring, bench::bare_web& web)
        : ring_{ring}
        , web_{web} {}

    void received(int fd, std::string_view bytes) {
        web_.received(fd, bytes, [this](int made) { ring_.arm_receive(made); });
    }
    static void writable(int) {}
    void ended(int fd) { web_.ended(fd); }

private:
    bench::bare_ring& ring_;
    bench::bare_web& web_;
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    bench::bare_web web{given};
    bench::bare_ring ring{bench::listen_on_loopback(web.port(), 0), bench::bare_web::buffer};
    server answers{ring, web};
    ring.run(answers);
}
