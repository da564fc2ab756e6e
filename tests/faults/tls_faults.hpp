#pragma once
// tls_faults_test: a fixture whose faults include the allocations of OpenSSL; and what the plays of
// connections share.

#include "tls/tls_pair.hpp"

#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/tls.hpp>

#include <cstddef>
#include <string>
#include <utility>

#include <openssl/crypto.h>

namespace simplenet::v0::testing {

/// Whether only the allocations of the library fail, and not those of OpenSSL.
inline bool exempts_openssl = false;

inline void* malloc_of_openssl(std::size_t size, const char*, int) {
    if (!exempts_openssl) return failing_malloc(size);
    const exempt_allocations theirs;
    return failing_malloc(size);
}
inline void* realloc_of_openssl(void* memory, std::size_t size, const char*, int) {
    if (!exempts_openssl) return failing_realloc(memory, size);
    const exempt_allocations theirs;
    return failing_realloc(memory, size);
}
inline void free_of_openssl(void* memory, const char*, int) {
    failing_free(memory);
}

// Before main(), because OpenSSL accepts other functions only before its first allocation.
inline const bool replaced =
    CRYPTO_set_mem_functions(&malloc_of_openssl, &realloc_of_openssl, &free_of_openssl) == 1;

class tls_faults_test : public fail_everywhere_test {
protected:
    void SetUp() override {
        ASSERT_TRUE(replaced);
        fail_everywhere_test::SetUp();
        expect_caches();
        used = GetParam();
    }
    void TearDown() override { exempts_openssl = false; }

public:
    static inline backend used = backend::epoll; // for the scenarios
};

using tls_tcp = tls::stream<tcp_stream>;

/// The contexts exist before the faults.
class talking : public fault_scenario {
protected:
    static tls::context plain_server() {
        return server_with("server",
                           [](tls::server_config& config) { config.session_tickets = false; });
    }
    talking(tls::context server, tls::context client)
        : server_{std::move(server)}
        , client_{std::move(client)} {}

    /// Both ends of a connection, before the handshake.
    struct ends {
        tls_tcp client;
        tls_tcp server;
    };
    task<result<ends>> connect() {
        auto made = co_await make_connection();
        if (!made) co_return fail(made);
        co_return ends{tls_tcp{std::move(made->client), client_, {.server_name = "localhost"}},
                       tls_tcp{std::move(made->server), server_}};
    }
    /// Three words there and back.
    template <class S>
    static task<result<std::string>> talk_by(S at_client, S at_server) {
        std::string got;
        auto server = echo_by_read_some(std::move(at_server));
        auto client = converse(std::move(at_client), "one two three", got);
        const auto ended = co_await gather(std::move(server), std::move(client));
        if (!ended) co_return fail(ended);
        co_return got;
    }
    task<result<std::string>> talk() {
        auto both = co_await connect();
        if (!both) co_return fail(both);
        co_return co_await talk_by(std::move(both->client), std::move(both->server));
    }

    tls::context server_;
    tls::context client_;
};

} // namespace simplenet::v0::testing
