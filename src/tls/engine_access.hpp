#pragma once
// engine_access: what OpenSSL's callbacks need of an engine. Layer tls, private.

#include "tls/openssl.hpp"
#include "tls/settings.hpp"

#include <simplenet/tls/detail/engine.hpp>

namespace simplenet::v0::tls::detail {

struct engine_access {
    /// The connection that an SSL belongs to.
    [[nodiscard]] static engine_access of(SSL* connection) noexcept {
        return {*static_cast<engine*>(BIO_get_data(SSL_get_rbio(connection)))};
    }
    /// Keeps a session that the server has offered for resumption.
    void keep_session(session_ptr session) const noexcept;
    /// Asks settings::verify_peer. @pre there is one.
    [[nodiscard]] static bool accepts(X509* certificate, int verification,
                                      const settings& config) noexcept;

    /// What OpenSSL calls.
    static int read(BIO* bio, char* into, int size) noexcept;
    static int write(BIO* bio, const char* from, int size) noexcept;
    static void saw_message(int sent, int version, int type, const void* data, std::size_t size,
                            SSL* connection, void* data_of) noexcept;

    engine& self;
};

} // namespace simplenet::v0::tls::detail
