#pragma once
// tls::session_cache: the sessions that a client may resume. Layer tls.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <memory>

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

namespace detail {
class session_store;
} // namespace detail

/// Sessions that clients may resume, which saves the exchange of certificates and a signature.
///
/// A session is offered only to the same server name, with the same ALPN, and by contexts with the
/// same trust and the same certificate of their own. A ticket of TLS 1.3 is used once, as RFC 8446
/// (appendix C.4) recommends.
///
/// @par Thread safety
/// Any thread. It must outlive the contexts that use it, and their streams.
class session_cache {
public:
    /// Keeps at most `most` sessions, and drops the one that was stored first for a further one.
    explicit session_cache(std::size_t most = 1024);
    session_cache(const session_cache&) = delete;
    session_cache& operator=(const session_cache&) = delete;
    ~session_cache();

    /// The number of sessions that are kept. An expired one counts until a connection with its key
    /// (name, ALPN, trust, certificate) looks for a session, or until it makes room for another.
    [[nodiscard]] std::size_t size() const noexcept;
    /// Drops all sessions.
    void clear() noexcept;

    /// Internal.
    [[nodiscard]] detail::session_store& store() const noexcept { return *store_; }

private:
    std::unique_ptr<detail::session_store> store_;
};

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
