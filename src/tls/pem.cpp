#include "tls/pem.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/tls/errc.hpp>

#include <openssl/ocsp.h>
#include <openssl/pem.h>

#include <cerrno>
#include <climits>
#include <new>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace simplenet::v0::tls::detail {

namespace {

constexpr std::size_t most_of_a_file = std::size_t{64} * 1024 * 1024;

bio_ptr memory_of(std::string_view text) {
    if (text.size() > INT_MAX) throw std::bad_alloc{};
    bio_ptr made{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
    if (!made) throw std::bad_alloc{};
    return made;
}

/// Whether the last error only says that nothing more follows.
bool was_last() noexcept {
    const unsigned long code = ERR_peek_last_error();
    return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

// The default of OpenSSL would ask on the terminal.
int refuse_password(char*, int, int, void*) noexcept {
    return -1;
}

/// All objects of a kind in PEM; at least one. `Make` and `Read` are OpenSSL's functions for it.
template <class Owner, auto Make, auto Read>
loaded<std::vector<Owner>> read_all(OSSL_LIB_CTX* library, std::string_view text,
                                    const std::string& where, const char* kind) {
    ERR_clear_error();
    const bio_ptr from = memory_of(text);
    std::vector<Owner> all;
    for (;;) {
        auto* made = Make(library, nullptr);
        if (made == nullptr) throw std::bad_alloc{};
        const bool was_read = Read(from.get(), &made, &refuse_password, nullptr) != nullptr;
        Owner owned{made}; // null if a failure has freed it
        if (!was_read) break;
        all.push_back(std::move(owned));
    }
    if (!was_last()) return bad(where);
    ERR_clear_error();
    if (all.empty()) return bad(where + ": no " + kind + " in PEM");
    return all;
}

/// Whether the public key could not be decoded for lack of memory. OpenSSL then treats it as a key
/// of an unknown kind, and the certificate verifies nothing.
bool lost_its_key(const X509& certificate, OSSL_LIB_CTX* library) {
    if (X509_get0_pubkey(&certificate) != nullptr) return false;
    ERR_clear_error();
    unsigned char* der = nullptr;
    const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(&certificate), &der);
    if (size < 0) return true;
    const unsigned char* next = der;
    const key_ptr key{d2i_PUBKEY_ex(nullptr, &next, size, library, nullptr)};
    OPENSSL_free(der);
    return key || lacks_memory(ERR_peek_error()) || lacks_memory(ERR_peek_last_error());
}

struct password_request {
    const secret& password;
    bool made = false;
};
int give_password(char* into, int size, int, void* data) noexcept {
    auto& request = *static_cast<password_request*>(data);
    request.made = true;
    const std::string_view password = request.password.view();
    // An empty one would be tried.
    if (password.empty() || password.size() > static_cast<std::size_t>(size)) return -1;
    password.copy(into, password.size());
    return static_cast<int>(password.size());
}

} // namespace

loaded<secret> read_file(const std::string& path) {
    const unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
    if (!file) return system_failure(errno, path);
    // But a pipe whose writer is still at work, such as one of a shell's <(...), is read to its
    // end.
    if (::fcntl(file.get(), F_SETFL, 0) != 0) return system_failure(errno, path);
    secret content;
    for (;;) {
        const std::size_t before = content.size();
        if (before > most_of_a_file) return system_failure(EFBIG, path);
        content.resize(before + std::size_t{16} * 1024);
        ::ssize_t count = 0;
        do {
            count = ::read(file.get(), content.data() + before, content.size() - before);
        } while (count < 0 && errno == EINTR);
        if (count < 0) return system_failure(errno, path);
        content.resize(before + static_cast<std::size_t>(count));
        if (count == 0) return content;
    }
}

std::unexpected<bad_material> system_failure(int number, const std::string& path) {
    const std::error_code code{number, std::system_category()};
    return std::unexpected{bad_material{code, path + ": " + code.message()}};
}

std::unexpected<bad_material> bad(const std::string& what) {
    if (lacks_memory(ERR_peek_error()) || lacks_memory(ERR_peek_last_error())) {
        ERR_clear_error();
        throw std::bad_alloc{};
    }
    const std::string reason = first_error();
    ERR_clear_error();
    return std::unexpected{bad_material{make_error_code(errc::bad_configuration),
                                        reason.empty() ? what : what + ": " + reason}};
}

loaded<std::vector<certificate_ptr>> read_certificates(OSSL_LIB_CTX* library, std::string_view text,
                                                       const std::string& where) {
    auto all = read_all<certificate_ptr, X509_new_ex, PEM_read_bio_X509>(library, text, where,
                                                                         "certificate");
    if (!all) return all;
    for (const certificate_ptr& each : *all) {
        if (lost_its_key(*each, library)) throw std::bad_alloc{};
    }
    ERR_clear_error();
    return all;
}

loaded<key_ptr> read_key(OSSL_LIB_CTX* library, std::string_view text, const secret& password,
                         const std::string& where) {
    ERR_clear_error();
    const bio_ptr from = memory_of(text);
    password_request request{password};
    key_ptr key{PEM_read_bio_PrivateKey_ex(from.get(), nullptr, &give_password, &request, library,
                                           nullptr)};
    if (key) return key;
    if (request.made && password.view().empty()) {
        ERR_clear_error(); // only says that there was none
        return bad(where + ": the private key needs a password");
    }
    return bad(where + ": no private key that can be read");
}

loaded<std::vector<crl_ptr>> read_revocations(OSSL_LIB_CTX* library, std::string_view text,
                                              const std::string& where) {
    return read_all<crl_ptr, X509_CRL_new_ex, PEM_read_bio_X509_CRL>(library, text, where,
                                                                     "revocation list");
}

loaded<void> check_ocsp_response(std::string_view text, const std::string& where) {
    ERR_clear_error();
    const auto* next = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = next + text.size();
    const std::unique_ptr<OCSP_RESPONSE, freed_by<OCSP_RESPONSE_free>> response{
        d2i_OCSP_RESPONSE(nullptr, &next, static_cast<long>(text.size()))};
    if (!response || next != end) return bad(where + ": no OCSP response in DER");
    if (OCSP_response_status(response.get()) != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
        return bad(where + ": the OCSP response says that the request failed");
    }
    return {};
}

} // namespace simplenet::v0::tls::detail
