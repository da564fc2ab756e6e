// TLS with OpenSSL and system calls alone: edge-triggered epoll, and OpenSSL reads and writes the
// socket itself. The baseline for a library: only the cost of the kernel and of OpenSSL remains.

#include "edge_triggered.hpp"
#include "fixed_answer.hpp"
#include "tls_options.hpp"

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

namespace {

struct freed {
    void operator()(SSL* of) const { SSL_free(of); }
    void operator()(SSL_CTX* of) const { SSL_CTX_free(of); }
};

struct connection {
    int fd;
    std::unique_ptr<SSL, freed> tls;
    std::vector<char> buffer;
    std::size_t unsent_from = 0;
    std::size_t unsent_to = 0; // offset in the buffer; equal: nothing waits to be sent
    std::size_t unanswered = 0;
};

class server {
public:
    explicit server(const bench::tls_options& how)
        : mode_{how.common.mode}
        , size_{how.common.mode == "source" ? how.common.block : how.common.buffer}
        , answer_{bench::answer_with(how.body)}
        , context_{SSL_CTX_new(TLS_server_method())} {
        if (SSL_CTX_use_certificate_chain_file(context_.get(), how.certificate.c_str()) != 1 ||
            SSL_CTX_use_PrivateKey_file(context_.get(), how.key.c_str(), SSL_FILETYPE_PEM) != 1) {
            std::fprintf(stderr, "the certificate or the key cannot be used\n");
            std::exit(1);
        }
        SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
        SSL_CTX_set_mode(context_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_read_ahead(context_.get(), 1); // one recv(2) for header and record
        listener_ = bench::listen_on_loopback(how.common.port, SOCK_NONBLOCK);
    }

    [[noreturn]] void run() const {
        bench::serve_at_edges(
            listener_, [this](int fd) { return accepted(fd); },
            [this](connection& of) { return serve(of); });
    }

private:
    connection* accepted(int fd) const {
        auto* const of = new connection{.fd = fd, .tls = {}, .buffer = std::vector<char>(size_)};
        of->tls.reset(SSL_new(context_.get()));
        SSL_set_fd(of->tls.get(), fd);
        SSL_set_accept_state(of->tls.get());
        return of;
    }

    /// False: the connection is over.
    bool serve(connection& of) const {
        if (SSL_is_init_finished(of.tls.get()) != 1) {
            const int made = SSL_do_handshake(of.tls.get());
            if (made != 1) return waits(of, made);
        }
        if (mode_ == "source") return send_for_ever(of);
        while (true) {
            while (of.unsent_from != of.unsent_to) {
                const int sent = SSL_write(of.tls.get(), of.buffer.data() + of.unsent_from,
                                           static_cast<int>(of.unsent_to - of.unsent_from));
                if (sent <= 0) return waits(of, sent);
                of.unsent_from += static_cast<std::size_t>(sent);
                // OpenSSL reads more at once than a message has, so the socket is empty.
                const bool whole = of.unsent_from == of.unsent_to && of.unsent_to < size_;
                if (whole && mode_ == "echo" && SSL_has_pending(of.tls.get()) == 0) return true;
            }
            const int got = SSL_read(of.tls.get(), of.buffer.data(), static_cast<int>(size_));
            if (got <= 0) return waits(of, got);
            if (mode_ == "answer") {
                const int sent = SSL_write(of.tls.get(), answer_.data(), int(answer_.size()));
                if (sent <= 0) return waits(of, sent);
                if (SSL_has_pending(of.tls.get()) == 0) return true;
                continue;
            }
            of.unsent_from = 0;
            of.unsent_to = static_cast<std::size_t>(got);
            if (mode_ == "sink") {
                of.unanswered += of.unsent_to;
                of.unsent_to = of.unanswered / bench::sink_unit; // a byte for each
                of.unanswered %= bench::sink_unit;
            }
        }
    }

    bool send_for_ever(connection& of) const {
        while (true) {
            const int sent =
                SSL_write(of.tls.get(), of.buffer.data(), static_cast<int>(of.buffer.size()));
            if (sent <= 0) return waits(of, sent);
        }
    }

    static bool waits(const connection& of, int outcome) {
        const int why = SSL_get_error(of.tls.get(), outcome);
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return true;
        ERR_clear_error(); // or the next connection would fail with it
        return false;
    }

    std::string_view mode_;
    std::size_t size_;
    std::string answer_;
    std::unique_ptr<SSL_CTX, freed> context_;
    int listener_ = -1;
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments words{argc, argv};
    const auto how = bench::tls_options::read(words, "epoll");
    if (how.loops > 1) bench::server_options::unknown("option", "loops");
    std::signal(SIGPIPE, SIG_IGN); // OpenSSL writes with write(2)
    server{how}.run();
}
