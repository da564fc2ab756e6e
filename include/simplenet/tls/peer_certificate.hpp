#pragma once
// tls::peer_certificate: what the certificate of a peer says. Layer tls.

#include <simplenet/core/abi.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

struct x509_st; // of OpenSSL

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

/// A certificate. Copies share it.
///
/// @par Thread safety
/// Any thread.
/// @par Cost
/// Each function reads the certificate and allocates; throws std::bad_alloc.
class peer_certificate {
public:
    /// The name of the holder, in the notation of RFC 2253. May be empty (RFC 5280, section
    /// 4.1.2.6).
    [[nodiscard]] std::string subject() const;
    /// The name of the authority that signed the certificate, in the same notation.
    [[nodiscard]] std::string issuer() const;
    /// The first second in which the certificate is valid (RFC 5280, section 4.1.2.5). The epoch if
    /// the certificate has no readable time.
    [[nodiscard]] std::chrono::system_clock::time_point not_before() const;
    /// The last second in which the certificate is valid. The epoch likewise.
    [[nodiscard]] std::chrono::system_clock::time_point not_after() const;
    /// The DNS names and addresses that it is for. Names that contain a NUL are left out.
    [[nodiscard]] std::vector<std::string> names() const;
    /// SHA-256 of the certificate: 64 hexadecimal digits, lower case.
    [[nodiscard]] std::string fingerprint_sha256() const;
    /// The certificate in PEM, without its chain.
    [[nodiscard]] std::string pem() const;
    /// In hexadecimal digits, upper case.
    [[nodiscard]] std::string serial() const;

    /// Internal: takes a reference that it counts itself.
    explicit peer_certificate(x509_st* certificate) noexcept;
    peer_certificate(const peer_certificate& other) noexcept;
    peer_certificate(peer_certificate&& other) noexcept;
    peer_certificate& operator=(peer_certificate other) noexcept;
    ~peer_certificate();

private:
    x509_st* certificate_; // counted; null only after a move
};

} // namespace simplenet::v0::tls

#pragma GCC visibility pop
