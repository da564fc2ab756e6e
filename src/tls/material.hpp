#pragma once
// material: what a context has made of its configuration and files at one time. Layer tls, private.

#include "tls/context_state.hpp"
#include "tls/openssl.hpp"

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace simplenet::v0::tls::detail {

/// Why a configuration cannot be used, and a text for people.
struct bad_material {
    std::error_code code;
    std::string detail;
};
template <class T>
using loaded = std::expected<T, bad_material>;

/// Certificates, keys and trust, ready for use. Immutable; any thread. A connection keeps what it
/// began with.
class material {
public:
    /// Reads the files.
    [[nodiscard]] static loaded<std::shared_ptr<const material>>
    load(std::shared_ptr<context_state> state);

    explicit material(std::shared_ptr<context_state> state) noexcept
        : state_{std::move(state)} {}
    material(const material&) = delete;
    material& operator=(const material&) = delete;
    ~material() = default;

    [[nodiscard]] context_state& state() const noexcept { return *state_; }
    [[nodiscard]] const settings& config() const noexcept { return *state_->config; }
    /// For a client, and for a server's clients that name no known host.
    [[nodiscard]] SSL_CTX* standard() const noexcept { return contexts_.front().get(); }
    /// For a name of SNI, in lower case; null: none matches.
    [[nodiscard]] SSL_CTX* for_name(const std::string& name) const;
    /// The response in DER for a certificate of ours; null: there is none.
    [[nodiscard]] const std::string* ocsp_response_for(const X509* certificate) const noexcept;
    /// A digest of what vouches for the peer, and of who we are: sessions do not outlive a change.
    [[nodiscard]] std::string_view digest() const noexcept { return digest_; }
    /// A part of it: what vouches for the peer.
    [[nodiscard]] std::string_view trust() const noexcept { return trust_; }

private:
    friend class material_loader;

    const std::shared_ptr<context_state> state_; // outlives the contexts
    std::vector<ssl_context_ptr> contexts_;
    std::unordered_map<const X509*, std::string> ocsp_responses_; // of their certificates
    std::unordered_map<std::string, SSL_CTX*> names_;             // "*.example.org" for a wildcard
    std::string digest_;
    std::string trust_;
};

} // namespace simplenet::v0::tls::detail
