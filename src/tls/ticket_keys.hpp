#pragma once
// ticket_keys: the keys with which a server seals the tickets of its sessions. Layer tls, private.

#include "tls/openssl.hpp"

#include <array>
#include <chrono>
#include <mutex>
#include <optional>

namespace simplenet::v0::tls::detail {

/// The present key and the one before it. The present one is replaced when it is `lifetime` old,
/// and opens tickets for one more lifetime. Any thread.
class ticket_keys {
public:
    explicit ticket_keys(std::chrono::seconds lifetime) noexcept
        : lifetime_{lifetime} {}
    ticket_keys(const ticket_keys&) = delete;
    ticket_keys& operator=(const ticket_keys&) = delete;
    ~ticket_keys() { forget(); }

    /// All tickets become invalid.
    void forget() noexcept;

    /// For SSL_CTX_set_tlsext_ticket_key_evp_cb(3), whose names and results these are.
    [[nodiscard]] int seal(OSSL_LIB_CTX* library, unsigned char* key_name, unsigned char* iv,
                           EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) noexcept;
    [[nodiscard]] int open(OSSL_LIB_CTX* library, const unsigned char* key_name,
                           const unsigned char* iv, EVP_CIPHER_CTX* cipher,
                           EVP_MAC_CTX* mac) noexcept;

private:
    using clock = std::chrono::steady_clock;
    struct key {
        std::array<unsigned char, 16> name;
        std::array<unsigned char, 32> encryption;
        std::array<unsigned char, 32> authentication;
        clock::time_point made;
    };

    [[nodiscard]] bool renew(OSSL_LIB_CTX* library) noexcept;
    [[nodiscard]] static bool set_up(OSSL_LIB_CTX* library, key& with, const unsigned char* iv,
                                     EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac,
                                     int encrypts) noexcept;

    const std::chrono::seconds lifetime_;
    std::mutex mutex_;
    std::optional<key> present_;
    std::optional<key> previous_;
};

} // namespace simplenet::v0::tls::detail
