#pragma once
// Shared by the examples with TLS: their options, errors with OpenSSL's reason, and certificates
// that are read again at SIGHUP. Not a part of the library.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace example {

/// As failed(). OpenSSL's reason for people, if there is one, says more than the error.
inline int tls_failed(std::string_view what, std::error_code why, const std::string& detail) {
    std::string text = why.message();
    if (detail.ends_with(text)) {
        text = detail;
    } else if (!detail.empty()) {
        text += " (" + detail + ')';
    }
    std::cerr << std::string{what} + ": " + text + '\n';
    return EXIT_FAILURE;
}

inline std::string_view to_string(simplenet::tls::version version) {
    return version == simplenet::tls::version::tls_1_3 ? "TLS 1.3" : "TLS 1.2";
}

/// The parts of a list with commas: `a,b`.
inline std::vector<std::string_view> parts_of(std::string_view list) {
    std::vector<std::string_view> parts;
    while (!list.empty()) {
        const auto comma = list.find(',');
        parts.push_back(list.substr(0, comma));
        list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    }
    return parts;
}

/// A server by its name or address.
struct host_and_port {
    std::string host;
    std::uint16_t port = 0;

    [[nodiscard]] std::string to_string() const {
        const bool v6 = host.find(':') != std::string::npos;
        return (v6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
    }
};
/// `HOST:PORT`; an IPv6 address is in brackets.
inline host_and_port read_host_and_port(const arguments& given, std::string_view option,
                                        std::string_view text) {
    const auto colon = text.rfind(':');
    std::string_view host = text.substr(0, colon);
    const bool bracketed = host.starts_with('[') && host.ends_with(']');
    if (bracketed) host = host.substr(1, host.size() - 2);
    if (colon == std::string_view::npos || host.empty() ||
        (host.find(':') != std::string_view::npos) != bracketed) {
        given.wrong("bad " + std::string{option} + " '" + std::string{text} +
                    "': expected HOST:PORT, like localhost:443 or [::1]:443");
    }
    return {std::string{host}, given.port(text.substr(colon + 1))};
}

/// Where a TLS server listens, and its certificates.
struct tls_server_arguments {
    simplenet::endpoint at;
    simplenet::backend backend;
    simplenet::tls::context certificates;
};

/// The usage of the options that every TLS server here has.
inline constexpr std::string_view tls_server_usage =
    " --cert FILE --key FILE [--cert FILE --key FILE]... [--client-ca FILE] [--alpn a,b] "
    "[--address IP] [--port N] [--backend automatic|epoll|io_uring]";

enum class clients : std::uint8_t { any, known };

/// Reads the options and the files. If a file cannot be used, the program ends with the reason.
/// Clients are asked for a certificate if there is a --client-ca, which `known` requires.
inline tls_server_arguments read_tls_server_arguments(arguments& given,
                                                      clients served = clients::any) {
    using namespace simplenet;
    const auto address = given.address(given.option("--address").value_or("127.0.0.1"));
    const auto port = given.port(given.option("--port").value_or("7000"), 0);
    const auto backend = given.backend();
    const auto client_ca = given.option("--client-ca");
    const auto alpn = parts_of(given.option("--alpn").value_or(""));
    // The first certificate is for clients that ask for a name that none of them has.
    std::vector<tls::certificate_files> certificates;
    while (const auto chain = given.option("--cert")) {
        const auto key = given.option("--key");
        if (!key) given.wrong("--cert needs a --key");
        certificates.push_back({.chain_file = *chain, .key_file = *key});
    }
    if (certificates.empty()) given.wrong("--cert is missing");
    if (served == clients::known && !client_ca) given.wrong("--client-ca is missing");
    given.finish();

    tls::server_config config;
    config.certificate_chain_file = certificates.front().chain_file;
    config.private_key_file = certificates.front().key_file;
    config.more_certificates = std::span{certificates}.subspan(1);
    config.alpn = alpn;
    if (client_ca) {
        config.ask = tls::client_certificate::required;
        config.client_ca_file = *client_ca;
    }
    std::string detail;
    auto context = tls::context::server(config, &detail); // copies what it needs
    if (!context) std::exit(tls_failed("cannot use the certificates", context.error(), detail));
    return {{address, port}, backend, *std::move(context)};
}

//! [reload]
// Reads the certificates again at each SIGHUP, for the clients that connect from then on. If they
// cannot be used, the old ones stay.
inline simplenet::task<> reload_at_hangup(simplenet::tls::context certificates,
                                          simplenet::signal_set& hangups) {
    while (const auto signal = co_await hangups.next()) {
        std::string detail;
        // On a thread that may block: reload() reads files.
        auto reload = [&] { return certificates.reload(&detail); };
        const auto reloaded = co_await simplenet::run_blocking(reload);
        if (reloaded) {
            std::cout << "certificates reloaded" << std::endl;
        } else {
            tls_failed("cannot use the certificates", reloaded.error(), detail);
            std::cout << "the old certificates stay" << std::endl;
        }
    }
}
//! [reload]

/// Calls `serve` with options for tls::run_server() or run_server(), which end at SIGINT and
/// SIGTERM, and reloads the certificates at SIGHUP meanwhile. Returns the exit status.
template <class Serve>
int run_with_reload(const tls_server_arguments& given, simplenet::run_server_options options,
                    Serve serve) {
    using namespace simplenet;
    struct beside {
        tls::context certificates;
        signal_set hangups;
    } kept{given.certificates, signal_set{SIGHUP}};
    options.group.loop.backend = given.backend;
    options.context = &kept;
    options.on_listening = [](tcp_server& server, void* context) {
        auto& [certificates, hangups] = *static_cast<beside*>(context);
        event_loop::current()->spawn(reload_at_hangup(certificates, hangups));
        announce(server, event_loop::current()->selected_backend());
    };
    const result<shutdown_report> ended = serve(std::as_const(options));
    if (!ended) return failed("cannot serve at " + given.at.to_string(), ended.error());
    std::cout << ended->drained << " connections ended, " << ended->cut << " were cut" << std::endl;
    return EXIT_SUCCESS;
}

} // namespace example
