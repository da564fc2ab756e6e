#include <simplenet/tls/context.hpp>

#include "tls/context_core.hpp"
#include "tls/pem.hpp"

#include <simplenet/tls/errc.hpp>
#include <simplenet/tls/session_cache.hpp>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace simplenet::v0::tls {
namespace detail {

namespace {

bad_material contradiction(std::string what) {
    return {make_error_code(errc::bad_configuration), std::move(what)};
}

void copy(source& into, std::string_view file, std::string_view text) {
    into.file = file;
    into.text.assign(text);
}

/// As on the wire. Empty with protocols given: one of them is empty or longer than 255 bytes.
std::string alpn_text(std::span<const std::string_view> protocols) {
    std::string text;
    for (const std::string_view each : protocols) {
        if (each.empty() || each.size() > 255) return {};
        text += static_cast<char>(static_cast<unsigned char>(each.size()));
        text += each;
    }
    return text.size() > 65535 ? std::string{} : text;
}

loaded<unique_fd> open_key_log(const std::string& path) {
    // A FIFO that nobody reads fails instead of making the program wait.
    constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    unique_fd log{::open(path.c_str(), flags, S_IRUSR | S_IWUSR)};
    if (!log) return system_failure(errno, path);
    struct ::stat found{};
    if (::fstat(log.get(), &found) != 0) return system_failure(errno, path);
    if (S_ISCHR(found.st_mode)) return log;
    // A write to a pipe could raise SIGPIPE.
    if (!S_ISREG(found.st_mode)) {
        return std::unexpected{contradiction(path + ": a key log is a regular file or a device")};
    }
    // It may have existed, open to others.
    const bool is_private = (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    if (!is_private && ::fchmod(log.get(), S_IRUSR | S_IWUSR) != 0) {
        return system_failure(errno, path);
    }
    return log;
}

/// What both configurations have.
template <class Config>
loaded<std::unique_ptr<settings>> copy_shared(const Config& from, side plays) {
    auto made = std::make_unique<settings>();
    made->plays = plays;
    made->minimum = from.minimum;
    made->ciphers = from.ciphers;
    made->cipher_suites = from.cipher_suites;
    made->groups = from.groups;
    made->alpn = alpn_text(from.alpn);
    if (made->alpn.empty() && !from.alpn.empty()) return std::unexpected{contradiction("alpn")};
    made->key_log_file = from.key_log_file;
    made->max_chain_depth = from.max_chain_depth;
    return made;
}

/// Adds a certificate with its key. `what` is for messages.
loaded<void> add_identity(settings& to, const certificate_files& from, const char* what) {
    identity_source made;
    copy(made.chain, from.chain_file, from.chain_pem);
    copy(made.key, from.key_file, from.key_pem);
    made.password.assign(from.password);
    made.ocsp_response_file = from.ocsp_response_file;
    for (const source* each : {&made.chain, &made.key}) {
        if (each->is_given() && !each->is_contradictory()) continue;
        return std::unexpected{contradiction(
            std::string{what} +
            ": a certificate chain and a key are needed, each from a file or as text")};
    }
    to.identities.push_back(std::move(made));
    return {};
}

loaded<std::unique_ptr<settings>> copy_of(const client_config& from) {
    auto copied = copy_shared(from, side::client);
    if (!copied) return copied;
    settings& made = **copied;
    copy(made.ca, from.ca_file, from.ca_pem);
    made.ca_directory = from.ca_directory;
    made.crl_file = from.crl_file;
    made.verifies = from.verify;
    if (from.key_log_from_environment && made.key_log_file.empty()) {
        if (const char* const named = ::secure_getenv("SSLKEYLOGFILE")) made.key_log_file = named;
    }
    made.sessions = from.sessions;
    made.verify_peer = from.verify_peer;
    made.verify_data = from.verify_data;

    const certificate_files own{.chain_file = from.certificate_chain_file,
                                .key_file = from.private_key_file,
                                .chain_pem = from.certificate_chain_pem,
                                .key_pem = from.private_key_pem};
    const bool has_one = !(own.chain_file.empty() && own.key_file.empty() &&
                           own.chain_pem.empty() && own.key_pem.empty());
    if (has_one) {
        if (auto added = add_identity(made, own, "the client's certificate"); !added) {
            return std::unexpected{std::move(added).error()};
        }
    }
    return copied;
}

loaded<std::unique_ptr<settings>> copy_of(const server_config& from) {
    auto copied = copy_shared(from, side::server);
    if (!copied) return copied;
    settings& made = **copied;
    copy(made.ca, from.client_ca_file, from.client_ca_pem);
    made.crl_file = from.client_crl_file;
    made.ask = from.ask;
    if (from.ask != client_certificate::none && !made.ca.is_given()) {
        return std::unexpected{contradiction(
            "clients are asked for certificates, but there is no client_ca_file or client_ca_pem")};
    }
    made.session_tickets = from.session_tickets;
    made.ticket_lifetime = from.ticket_lifetime;
    if (from.ticket_lifetime.count() <= 0 || from.ticket_lifetime > std::chrono::hours{7 * 24}) {
        // RFC 8446, section 4.6.1: seven days at most.
        return std::unexpected{contradiction("ticket_lifetime: 1 s to 7 days")};
    }

    const certificate_files standard{.chain_file = from.certificate_chain_file,
                                     .key_file = from.private_key_file,
                                     .chain_pem = from.certificate_chain_pem,
                                     .key_pem = from.private_key_pem,
                                     .password = from.private_key_password,
                                     .ocsp_response_file = from.ocsp_response_file};
    if (auto added = add_identity(made, standard, "the server's certificate"); !added) {
        return std::unexpected{std::move(added).error()};
    }
    for (const certificate_files& each : from.more_certificates) {
        if (auto added = add_identity(made, each, "more_certificates"); !added) {
            return std::unexpected{std::move(added).error()};
        }
    }
    return copied;
}

loaded<std::shared_ptr<context_core>> make_core(loaded<std::unique_ptr<settings>> config) {
    if (!config) return std::unexpected{std::move(config).error()};
    auto state = std::make_shared<context_state>(*std::move(config));
    if (state->config->sessions != nullptr) state->sessions = &state->config->sessions->store();
    if (!state->config->key_log_file.empty()) {
        auto log = open_key_log(state->config->key_log_file);
        if (!log) return std::unexpected{std::move(log).error()};
        state->key_log = *std::move(log);
    }
    auto core = std::make_shared<context_core>(std::move(state));
    if (auto read = core->load(); !read) return std::unexpected{std::move(read).error()};
    return core;
}

std::unexpected<std::error_code> reported(bad_material&& failure, std::string* detail) {
    if (detail != nullptr) *detail = std::move(failure.detail);
    return std::unexpected{failure.code};
}

} // namespace

loaded<void> context_core::load() {
    const std::lock_guard alone{loading_};
    auto read = material::load(state_);
    if (!read) return std::unexpected{std::move(read).error()};
    const std::lock_guard locked{mutex_};
    const bool trusts_others = current_ != nullptr && current_->trust() != (*read)->trust();
    current_ = *std::move(read);
    if (trusts_others) state_->tickets.forget();
    return {};
}

} // namespace detail

result<context> context::client(const client_config& config, std::string* detail) {
    auto core = detail::make_core(detail::copy_of(config));
    if (!core) return detail::reported(std::move(core).error(), detail);
    return context{*std::move(core)};
}

result<context> context::server(const server_config& config, std::string* detail) {
    auto core = detail::make_core(detail::copy_of(config));
    if (!core) return detail::reported(std::move(core).error(), detail);
    return context{*std::move(core)};
}

result<> context::reload(std::string* detail) {
    auto read = core_->load();
    if (!read) return detail::reported(std::move(read).error(), detail);
    return {};
}

} // namespace simplenet::v0::tls
