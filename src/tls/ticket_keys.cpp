#include "tls/ticket_keys.hpp"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>
#include <span>

namespace simplenet::v0::tls::detail {

namespace {

template <class Key>
void wipe(std::optional<Key>& which) noexcept {
    if (which) OPENSSL_cleanse(&*which, sizeof(Key));
    which.reset();
}

} // namespace

bool ticket_keys::set_up(OSSL_LIB_CTX* library, key& with, const unsigned char* iv,
                         EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypts) noexcept {
    // EVP_aes_256_cbc() would be looked for where OpenSSL's configuration file applies.
    const std::unique_ptr<EVP_CIPHER, freed_by<EVP_CIPHER_free>> kind{
        EVP_CIPHER_fetch(library, "AES-256-CBC", nullptr)};
    if (!kind || EVP_CipherInit_ex2(cipher, kind.get(), with.encryption.data(), iv, encrypts,
                                    nullptr) != 1) {
        return false;
    }
    std::array<char, 7> digest{"SHA256"};
    const std::array parameters{
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, with.authentication.data(),
                                          with.authentication.size()),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
        OSSL_PARAM_construct_end()};
    return EVP_MAC_CTX_set_params(mac, parameters.data()) == 1;
}

void ticket_keys::forget() noexcept {
    const std::lock_guard locked{mutex_};
    wipe(present_);
    wipe(previous_);
}

bool ticket_keys::renew(OSSL_LIB_CTX* library) noexcept {
    const clock::time_point now = clock::now();
    if (present_ && now - present_->made < lifetime_) return true;
    key made{};
    made.made = now;
    const bool random =
        RAND_bytes_ex(library, made.name.data(), made.name.size(), 0) == 1 &&
        RAND_priv_bytes_ex(library, made.encryption.data(), made.encryption.size(), 0) == 1 &&
        RAND_priv_bytes_ex(library, made.authentication.data(), made.authentication.size(), 0) == 1;
    if (random) {
        wipe(previous_);
        if (present_ && now - present_->made < 2 * lifetime_) previous_ = present_;
        wipe(present_);
        present_ = made;
    }
    OPENSSL_cleanse(&made, sizeof made);
    return random;
}

int ticket_keys::seal(OSSL_LIB_CTX* library, unsigned char* key_name, unsigned char* iv,
                      EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) noexcept {
    const std::lock_guard locked{mutex_};
    if (!renew(library)) return -1;
    if (RAND_bytes_ex(library, iv, 16, 0) != 1) return -1;
    std::ranges::copy(present_->name, key_name);
    return set_up(library, *present_, iv, cipher, mac, 1) ? 1 : -1;
}

int ticket_keys::open(OSSL_LIB_CTX* library, const unsigned char* key_name, const unsigned char* iv,
                      EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) noexcept {
    const std::lock_guard locked{mutex_};
    if (!renew(library)) return -1;
    const auto is_named = [key_name](const std::optional<key>& each) {
        return each && std::ranges::equal(each->name, std::span{key_name, each->name.size()});
    };
    std::optional<key>* found = nullptr;
    if (is_named(present_)) {
        found = &present_;
    } else if (is_named(previous_) && clock::now() - previous_->made < 2 * lifetime_) {
        found = &previous_;
    }
    if (found == nullptr) return 0; // a full handshake
    if (!set_up(library, **found, iv, cipher, mac, 0)) return -1;
    return found == &present_ ? 1 : 2; // 2: with a new ticket
}

} // namespace simplenet::v0::tls::detail
