#pragma once
// raw_tls: a peer by OpenSSL itself over one end of a duplex, which may say what no stream of the
// library says.

#include "tls/tls_pair.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <openssl/ssl.h>

namespace simplenet::v0::testing {

/// Which side a raw peer plays.
enum class raw_side : bool { client, server };

class raw_tls {
public:
    /// A server has the certificate `server`, and gives no tickets.
    raw_tls(duplex_stream over, raw_side plays, int version)
        : over_{std::move(over)}
        , context_{SSL_CTX_new(plays == raw_side::server ? TLS_server_method()
                                                         : TLS_client_method()),
                   &SSL_CTX_free}
        , in_{BIO_new(BIO_s_mem())}
        , out_{BIO_new(BIO_s_mem())} {
        SSL_CTX_set_max_proto_version(context_.get(), version);
        SSL_CTX_set_min_proto_version(context_.get(), version);
        if (plays == raw_side::server) {
            const std::string chain = certificate("server.pem");
            const std::string key = certificate("server.key");
            SSL_CTX_use_certificate_chain_file(context_.get(), chain.c_str());
            SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM);
            SSL_CTX_set_options(context_.get(), SSL_OP_NO_TICKET);
            SSL_CTX_set_num_tickets(context_.get(), 0);
        }
        ssl_.reset(SSL_new(context_.get()));
        SSL_set_bio(ssl_.get(), in_, out_);
        if (plays == raw_side::server) {
            SSL_set_accept_state(ssl_.get());
        } else {
            SSL_set_connect_state(ssl_.get());
        }
    }

    /// Repeats `step`, a call of OpenSSL, until it needs nothing more. False: it failed.
    template <class Step>
    task<bool> until_done(Step step) {
        for (;;) {
            const int made = step(ssl_.get());
            if (!co_await flush()) co_return false;
            if (made > 0) co_return true;
            if (SSL_get_error(ssl_.get(), made) != SSL_ERROR_WANT_READ) co_return false;
            std::array<std::byte, 4096> some{};
            const auto count = co_await over_.read_some(some);
            if (!count) co_return false;
            const int size = static_cast<int>(*count);
            if (BIO_write(in_, some.data(), size) != size) co_return false;
        }
    }
    task<bool> handshake() { return until_done(SSL_do_handshake); }

    /// What OpenSSL has to say.
    std::vector<std::byte> take_output() {
        std::vector<std::byte> waiting(BIO_pending(out_));
        if (!waiting.empty()) BIO_read(out_, waiting.data(), static_cast<int>(waiting.size()));
        return waiting;
    }
    /// Sends it.
    task<bool> flush() {
        const auto waiting = take_output();
        if (waiting.empty()) co_return true;
        const auto sent = co_await async_write_all(over_, const_buffer{waiting});
        co_return sent.has_value();
    }
    SSL* ssl() const noexcept { return ssl_.get(); }
    duplex_stream& transport() noexcept { return over_; }

private:
    duplex_stream over_;
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
    struct frees {
        void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
    };
    std::unique_ptr<SSL, frees> ssl_;
    BIO* in_; // of ssl_
    BIO* out_;
};

} // namespace simplenet::v0::testing
