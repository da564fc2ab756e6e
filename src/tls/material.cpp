#include "tls/material.hpp"

#include "tls/names.hpp"
#include "tls/pem.hpp"
#include "tls/ssl_context.hpp"

#include <simplenet/tls/errc.hpp>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>

#include <sys/stat.h>

namespace simplenet::v0::tls::detail {

namespace {

/// The DNS names of a certificate, in lower case, sorted.
std::vector<std::string> dns_names(const X509& certificate) {
    std::vector<std::string> names = names_of(certificate, alternative_names::of_dns);
    for (std::string& each : names)
        each = in_lower_case(std::move(each));
    std::ranges::sort(names);
    return names;
}

std::string sha256(OSSL_LIB_CTX* library, std::string_view text) {
    std::string digest(32, '\0');
    std::size_t size = 0;
    const int made = EVP_Q_digest(library, "SHA256", nullptr, text.data(), text.size(),
                                  reinterpret_cast<unsigned char*>(digest.data()), &size);
    if (made != 1) throw std::bad_alloc{};
    return digest;
}

/// Adds a part to what a digest is made of; the length keeps parts apart.
void add(std::string& to, std::string_view part) {
    to += std::to_string(part.size());
    to += ':';
    to += part;
}

std::string der_of(const X509& certificate) {
    const int size = i2d_X509(&certificate, nullptr);
    if (size < 0) throw std::bad_alloc{};
    std::string der(static_cast<std::size_t>(size), '\0');
    auto* into = reinterpret_cast<unsigned char*>(der.data());
    if (i2d_X509(&certificate, &into) != size) throw std::bad_alloc{};
    return der;
}

} // namespace

/// Makes a material, step by step.
class material_loader {
public:
    explicit material_loader(std::shared_ptr<context_state> state)
        : made_{std::make_shared<material>(std::move(state))}
        , library_{made_->state().library.get()}
        , config_{made_->config()} {}

    loaded<std::shared_ptr<const material>> load() {
        if (auto read = load_trust(); !read) return std::unexpected{std::move(read).error()};
        if (config_.identities.empty()) { // a client without a certificate
            if (auto made = add_context({}); !made) return std::unexpected{std::move(made).error()};
        }
        for (const identity_source& each : config_.identities) {
            if (auto read = load_identity(each); !read) {
                return std::unexpected{std::move(read).error()};
            }
        }
        made_->trust_ = sha256(library_, trust_text_);
        made_->digest_ = sha256(library_, made_->trust_ + identity_text_ + settings_text());
        return made_;
    }

private:
    loaded<void> load_trust() {
        if (!config_.ca.file.empty()) {
            auto content = read_file(config_.ca.file);
            if (!content) return std::unexpected{std::move(content).error()};
            if (auto read = trust_in(content->view(), config_.ca.file); !read) return read;
        }
        if (!config_.ca.text.empty()) {
            if (auto read = trust_in(config_.ca.text.view(), "the CA certificates"); !read) {
                return read;
            }
        }
        if (!config_.ca_directory.empty()) {
            struct ::stat found{};
            const bool exists = ::stat(config_.ca_directory.c_str(), &found) == 0;
            if (!exists || !S_ISDIR(found.st_mode)) {
                return system_failure(exists ? ENOTDIR : errno, config_.ca_directory);
            }
            add(trust_text_, config_.ca_directory);
        }
        if (!config_.crl_file.empty()) {
            auto content = read_file(config_.crl_file);
            if (!content) return std::unexpected{std::move(content).error()};
            add(trust_text_, content->view());
            auto read = read_revocations(library_, content->view(), config_.crl_file);
            if (!read) return std::unexpected{std::move(read).error()};
            revocations_ = *std::move(read);
        }
        return {};
    }

    loaded<void> trust_in(std::string_view text, const std::string& where) {
        add(trust_text_, text);
        auto read = read_certificates(library_, text, where);
        if (!read) return std::unexpected{std::move(read).error()};
        std::ranges::move(*read, std::back_inserter(authorities_));
        return {};
    }

    loaded<void> load_identity(const identity_source& from) {
        auto chain = with_text(from.chain, "the certificate chain", [&](auto text, auto where) {
            return read_certificates(library_, text, where);
        });
        if (!chain) return std::unexpected{std::move(chain).error()};
        auto key = with_text(from.key, "the private key", [&](auto text, auto where) {
            return read_key(library_, text, from.password, where);
        });
        if (!key) return std::unexpected{std::move(key).error()};
        auto names = dns_names(*chain->front());
        const std::string where =
            from.chain.file.empty() ? "the certificate chain" : from.chain.file;

        SSL_CTX* into = partner_of(names, EVP_PKEY_get_base_id(key->get()));
        if (into == nullptr) {
            auto made = add_context(der_of(*chain->front()));
            if (!made) return std::unexpected{std::move(made).error()};
            into = *made;
        }
        if (auto used = use(into, *chain, key->get(), where); !used) return used;
        if (auto stapled = staple(chain->front().get(), from); !stapled) return stapled;
        add(identity_text_, der_of(*chain->front()));
        for (const std::string& name : names)
            made_->names_.emplace(name, into); // the first one stays
        identities_.push_back({std::move(names), EVP_PKEY_get_base_id(key->get()), into});
        return {};
    }

    /// A context for the same names whose certificates have keys of other kinds.
    SSL_CTX* partner_of(const std::vector<std::string>& names, int kind) const noexcept {
        if (names.empty()) return nullptr;
        SSL_CTX* partner = nullptr;
        for (const known& each : identities_) {
            if (each.names != names) continue;
            if (each.kind == kind) return nullptr;
            if (partner == nullptr) partner = each.context; // which for_name() finds
        }
        return partner;
    }

    loaded<SSL_CTX*> add_context(std::string_view certificate) {
        auto made = make_ssl_context(*made_);
        if (!made) return std::unexpected{std::move(made).error()};
        SSL_CTX* const context = made->get();
        if (auto set = set_trust(context); !set) return std::unexpected{std::move(set).error()};
        if (config_.plays == side::server) {
            // A ticket is good for the certificate and the demands under which it was made.
            std::string bound;
            add(bound, certificate);
            add(bound, trust_text_);
            add(bound, std::to_string(static_cast<int>(config_.ask)));
            const std::string id = sha256(library_, bound);
            SSL_CTX_set_session_id_context(context,
                                           reinterpret_cast<const unsigned char*>(id.data()),
                                           static_cast<unsigned int>(id.size()));
        }
        made_->contexts_.push_back(*std::move(made));
        return context;
    }

    loaded<void> set_trust(SSL_CTX* context) {
        X509_STORE* const store = SSL_CTX_get_cert_store(context);
        for (const certificate_ptr& each : authorities_) {
            if (X509_STORE_add_cert(store, each.get()) != 1) throw std::bad_alloc{};
            if (config_.plays == side::server && SSL_CTX_add_client_CA(context, each.get()) != 1) {
                throw std::bad_alloc{};
            }
        }
        if (!config_.ca_directory.empty() &&
            SSL_CTX_load_verify_dir(context, config_.ca_directory.c_str()) != 1) {
            return bad(config_.ca_directory);
        }
        const bool uses_system =
            config_.plays == side::client && authorities_.empty() && config_.ca_directory.empty();
        if (uses_system && SSL_CTX_set_default_verify_paths(context) != 1) {
            return bad("the system's certificates");
        }
        for (const crl_ptr& each : revocations_) {
            if (X509_STORE_add_crl(store, each.get()) != 1) throw std::bad_alloc{};
        }
        if (!revocations_.empty()) {
            X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
        }
        return {};
    }

    static loaded<void> use(SSL_CTX* context, const std::vector<certificate_ptr>& chain,
                            EVP_PKEY* key, const std::string& where) {
        ERR_clear_error();
        const std::unique_ptr<STACK_OF(X509), freed_by<free_stack>> rest{sk_X509_new_null()};
        if (!rest) throw std::bad_alloc{};
        for (auto each = chain.begin() + 1; each != chain.end(); ++each) {
            if (sk_X509_push(rest.get(), each->get()) == 0) throw std::bad_alloc{};
        }
        if (X509_check_private_key(chain.front().get(), key) != 1) {
            auto failed = bad(where);
            failed.error().code = make_error_code(errc::key_mismatch);
            return failed;
        }
        // The chain is copied with references; 1: replace what is there.
        if (SSL_CTX_use_cert_and_key(context, chain.front().get(), key, rest.get(), 1) != 1) {
            return bad(where);
        }
        return {};
    }
    static void free_stack(STACK_OF(X509) * stack) noexcept { sk_X509_free(stack); }

    loaded<void> staple(const X509* certificate, const identity_source& from) {
        if (from.ocsp_response_file.empty()) return {};
        auto content = read_file(from.ocsp_response_file);
        if (!content) return std::unexpected{std::move(content).error()};
        if (auto right = check_ocsp_response(content->view(), from.ocsp_response_file); !right) {
            return right;
        }
        made_->ocsp_responses_.emplace(certificate, content->view());
        return {};
    }

    std::string settings_text() const {
        std::string text;
        add(text, config_.alpn);
        add(text, config_.verifies ? "verifies" : "");
        add(text, std::to_string(config_.max_chain_depth));
        add(text, std::to_string(static_cast<int>(config_.minimum)));
        add(text, config_.ciphers);
        add(text, config_.cipher_suites);
        add(text, config_.groups);
        return text;
    }

    struct known {
        std::vector<std::string> names;
        int kind; // of the key
        SSL_CTX* context;
    };

    std::shared_ptr<material> made_;
    OSSL_LIB_CTX* library_;
    const settings& config_;
    std::vector<certificate_ptr> authorities_;
    std::vector<crl_ptr> revocations_;
    std::vector<known> identities_;
    std::string trust_text_;
    std::string identity_text_;
};

loaded<std::shared_ptr<const material>> material::load(std::shared_ptr<context_state> state) {
    return material_loader{std::move(state)}.load();
}

const std::string* material::ocsp_response_for(const X509* certificate) const noexcept {
    const auto found = ocsp_responses_.find(certificate);
    return found == ocsp_responses_.end() ? nullptr : &found->second;
}

SSL_CTX* material::for_name(const std::string& name) const {
    if (name.empty()) return nullptr;
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos || dot == 0) return nullptr;
    const auto found = names_.find('*' + name.substr(dot));
    return found == names_.end() ? nullptr : found->second;
}

} // namespace simplenet::v0::tls::detail
