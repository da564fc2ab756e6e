#pragma once
// settings: what a context keeps of its configuration. Layer tls, private.

#include "tls/openssl.hpp"

#include <simplenet/tls/config.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::tls::detail {

enum class side : std::uint8_t { client, server };

/// A file, or the text that would be in it.
struct source {
    std::string file;
    secret text;
    [[nodiscard]] bool is_given() const noexcept { return !file.empty() || !text.empty(); }
    [[nodiscard]] bool is_contradictory() const noexcept { return !file.empty() && !text.empty(); }
};

struct identity_source {
    source chain;
    source key;
    secret password;
    std::string ocsp_response_file;
};

/// Owns copies of what the configuration borrows. Read-only once it is complete.
struct settings {
    side plays = side::client;
    std::deque<identity_source> identities; // the first is the default
    source ca;                              // of the peer
    std::string ca_directory;
    std::string crl_file;
    bool verifies = true;
    client_certificate ask = client_certificate::none;
    version minimum = version::tls_1_2;
    std::string ciphers;
    std::string cipher_suites;
    std::string groups;
    std::string alpn; // as on the wire: each with its length before it
    std::string key_log_file;
    unsigned max_chain_depth = 10;

    session_cache* sessions = nullptr; // of a client; null: the context's own
    bool (*verify_peer)(const peer_certificate&, std::error_code, void*) = nullptr;
    void* verify_data = nullptr;

    bool session_tickets = true; // of a server
    std::chrono::seconds ticket_lifetime{0};
};

} // namespace simplenet::v0::tls::detail
