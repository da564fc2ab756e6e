#include "tls/library_context.hpp"

#include "tls/openssl.hpp"

#include <openssl/crypto.h>
#include <openssl/decoder.h>
#include <openssl/kdf.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace simplenet::v0::tls::detail {

namespace {

/// Contexts that were returned. Never destroyed: a static tls::context may end after everything
/// else.
struct idle_contexts {
    std::mutex mutex;
    std::vector<OSSL_LIB_CTX*> contexts;
    std::size_t all = 0;
};

idle_contexts& idle() {
    static auto* const instance = new idle_contexts;
    return *instance;
}

/// OpenSSL would free its state in a handler of atexit(3), and streams with static storage duration
/// would use it afterwards. Has an effect only if the program has not used OpenSSL before.
void keep_after_exit() noexcept {
    static const int done = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    static_cast<void>(done);
}

/// OpenSSL makes its default library context once, and does not try again after a failure. The
/// other contexts need it. So it is made first, before anything else asks for memory.
void make_default() noexcept {
    static OSSL_LIB_CTX* const made = OSSL_LIB_CTX_get0_global_default();
    static_cast<void>(made);
}

template <auto Fetch, auto Free>
bool has(OSSL_LIB_CTX* in, std::initializer_list<const char*> names,
         const char* properties = nullptr) noexcept {
    return std::ranges::all_of(names, [&](const char* name) {
        auto* const found = Fetch(in, name, properties);
        Free(found);
        return found != nullptr;
    });
}

bool any_error_lacks_memory() noexcept {
    bool any = false;
    while (const unsigned long entry = ERR_get_error())
        any = any || lacks_memory(entry);
    return any;
}

/// The first fetch of each kind makes all methods of that kind. If a method lacks memory then, it
/// is missing for the life of the context: certificates cannot be read, or handshakes fail.
bool has_its_methods(OSSL_LIB_CTX* in) noexcept {
    constexpr const char* of_public = "input=der,structure=SubjectPublicKeyInfo";
    constexpr const char* of_private = "input=der,structure=PrivateKeyInfo";
    ERR_clear_error();
    const bool found =
        has<EVP_MD_fetch, EVP_MD_free>(in, {"SHA256", "SHA384", "SHA512"}) &&
        has<EVP_CIPHER_fetch, EVP_CIPHER_free>(in, {"AES-128-GCM", "AES-256-GCM", "AES-256-CBC"}) &&
        has<EVP_MAC_fetch, EVP_MAC_free>(in, {"HMAC"}) &&
        has<EVP_KDF_fetch, EVP_KDF_free>(in, {"HKDF", "TLS13-KDF", "TLS1-PRF"}) &&
        has<EVP_RAND_fetch, EVP_RAND_free>(in, {"CTR-DRBG"}) &&
        has<EVP_KEYMGMT_fetch, EVP_KEYMGMT_free>(in, {"EC", "RSA", "X25519"}) &&
        has<EVP_KEYEXCH_fetch, EVP_KEYEXCH_free>(in, {"ECDH", "X25519"}) &&
        has<EVP_SIGNATURE_fetch, EVP_SIGNATURE_free>(in, {"ECDSA", "RSA"}) &&
        has<OSSL_DECODER_fetch, OSSL_DECODER_free>(in, {"EC", "RSA"}, of_public) &&
        has<OSSL_DECODER_fetch, OSSL_DECODER_free>(in, {"EC", "RSA"}, of_private) &&
        ssl_context_ptr{SSL_CTX_new_ex(in, nullptr, TLS_method())} != nullptr;
    return !any_error_lacks_memory() && found;
}

} // namespace

library_context::library_context() {
    keep_after_exit();
    make_default();
    idle_contexts& all = idle();
    const std::lock_guard locked{all.mutex};
    if (!all.contexts.empty()) {
        context_ = all.contexts.back();
        all.contexts.pop_back();
        return;
    }
    all.contexts.reserve(all.all + 1); // so that the destructor cannot fail
    // Only this thread has used it, so it may be freed.
    std::unique_ptr<OSSL_LIB_CTX, freed_by<OSSL_LIB_CTX_free>> made{OSSL_LIB_CTX_new()};
    if (!made || !has_its_methods(made.get())) throw std::bad_alloc{};
    context_ = made.release();
    ++all.all;
}

library_context::~library_context() {
    idle_contexts& all = idle();
    const std::lock_guard locked{all.mutex};
    all.contexts.push_back(context_);
}

} // namespace simplenet::v0::tls::detail
