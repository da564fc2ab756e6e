#pragma once
// How the load client speaks to a server: in plain bytes, or in TLS if BENCH_TLS is defined. The
// same members either way, which behave as send(2) and recv(2) with MSG_DONTWAIT.

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <sys/socket.h>
#include <unistd.h>

#ifdef BENCH_TLS
#include <openssl/ssl.h>

#include <fcntl.h>
#endif

namespace bench {

#ifdef BENCH_TLS

/// What the connections of a thread share: TLS 1.3 with one cipher suite and one group, and the
/// last session that the server has offered.
class channel_settings {
public:
    explicit channel_settings(bool resumes)
        : context_{SSL_CTX_new(TLS_client_method())} {
        const bool made = context_ != nullptr &&
                          SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION) == 1 &&
                          SSL_CTX_set_ciphersuites(context_, "TLS_AES_256_GCM_SHA384") == 1 &&
                          SSL_CTX_set1_groups_list(context_, "X25519") == 1;
        if (!made) {
            std::fprintf(stderr, "no TLS\n");
            std::exit(1);
        }
        SSL_CTX_set_mode(context_, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_cache_mode(context_,
                                       SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        if (!resumes) return;
        SSL_CTX_set_app_data(context_, this);
        SSL_CTX_sess_set_new_cb(context_, [](SSL* connection, SSL_SESSION* session) {
            auto& self =
                *static_cast<channel_settings*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection)));
            SSL_SESSION_free(self.session_);
            self.session_ = session;
            return 1;
        });
    }
    channel_settings(const channel_settings&) = delete;
    channel_settings& operator=(const channel_settings&) = delete;
    ~channel_settings() {
        SSL_SESSION_free(session_);
        SSL_CTX_free(context_);
    }

private:
    friend class channel;

    SSL_CTX* context_;
    SSL_SESSION* session_ = nullptr;
};

class channel {
public:
    /// Takes a connected socket, and sends the first message of the handshake; the rest of it is
    /// done by send() and recv().
    void open(int fd, channel_settings& with) {
        fd_ = fd;
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
        tls_ = SSL_new(with.context_);
        SSL_set_fd(tls_, fd);
        SSL_set_connect_state(tls_);
        if (with.session_ != nullptr) {
            // OpenSSL offers a session of TLS 1.3 once.
            SSL_SESSION* const own = SSL_SESSION_dup(with.session_);
            SSL_set_session(tls_, own);
            SSL_SESSION_free(own);
        }
        SSL_do_handshake(tls_);
    }
    void close() {
        // Otherwise OpenSSL would forget a session whose connection was not shut down.
        SSL_set_shutdown(tls_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(tls_);
        ::close(fd_);
    }
    ssize_t send(const char* data, std::size_t size) {
        return moved(SSL_write(tls_, data, static_cast<int>(size)));
    }
    ssize_t recv(char* into, std::size_t size) {
        return moved(SSL_read(tls_, into, static_cast<int>(size)));
    }
    [[nodiscard]] bool resumed() const { return SSL_session_reused(tls_) == 1; }

private:
    ssize_t moved(int count) {
        if (count > 0) return count;
        const int why = SSL_get_error(tls_, count);
        if (why == SSL_ERROR_ZERO_RETURN) return 0;
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
            errno = EAGAIN;
        } else if (why != SSL_ERROR_SYSCALL || errno == EAGAIN) {
            errno = EPROTO;
        }
        return -1;
    }

    SSL* tls_ = nullptr;
    int fd_ = -1;
};

#else

struct channel_settings {
    explicit channel_settings(bool) {}
};

class channel {
public:
    void open(int fd, channel_settings&) { fd_ = fd; }
    void close() { ::close(fd_); }
    ssize_t send(const char* data, std::size_t size) {
        return ::send(fd_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    ssize_t recv(char* into, std::size_t size) { return ::recv(fd_, into, size, MSG_DONTWAIT); }
    [[nodiscard]] static bool resumed() { return false; }

private:
    int fd_ = -1;
};

#endif

} // namespace bench
