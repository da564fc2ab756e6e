#pragma once
// tls::context: certificates, trust and settings, shared by many streams. Layer tls.

#include <simplenet/core/error.hpp>
#include <simplenet/tls/config.hpp>

#include <memory>
#include <string>

namespace simplenet::v0::tls::detail {
// Internal: not exported, because they are first declared here.
class context_core;
} // namespace simplenet::v0::tls::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

/// Certificates, trust and settings of one side, for many streams.
///
/// A handle that is cheap to copy. Immutable but for reload(). Each context has an OpenSSL library
/// context of its own: OpenSSL's global configuration file does not apply, and what its default
/// section for TLS sets is put back.
///
/// @par Thread safety
/// Any thread.
class context {
public:
    /// For the side that connects. Without arguments: the system's trust store.
    ///
    /// @param detail  If not null, gets a text for people when the call fails: which file, and why.
    ///
    /// @par Errors
    /// - `errc::bad_configuration`: something is missing or contradictory, or OpenSSL cannot read
    ///   it.
    /// - `errc::key_mismatch`: the key does not belong to the certificate.
    /// - The error of open(2) or read(2) for a file.
    ///
    /// Throws std::bad_alloc.
    [[nodiscard]] static result<context> client(const client_config& config = {},
                                                std::string* detail = nullptr);

    /// For the side that accepts. Errors as for client().
    [[nodiscard]] static result<context> server(const server_config& config,
                                                std::string* detail = nullptr);

    /// Reads the files again, for handshakes that begin from now on. If that fails, nothing
    /// changes. Errors as for client(). Any thread; blocks on the files.
    ///
    /// If a server's client CA or revocation list changes, its tickets become invalid.
    result<> reload(std::string* detail = nullptr);

    /// Internal.
    [[nodiscard]] detail::context_core& core() const noexcept { return *core_; }

private:
    explicit context(std::shared_ptr<detail::context_core> core) noexcept
        : core_{std::move(core)} {}

    std::shared_ptr<detail::context_core> core_;
};

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
