#include "httpd/process/tls_context.hpp"

#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace httpd {

namespace tls = simplenet::tls;

tls::context make_context(const tls_options& from) {
    // A client that offers only HTTP/1.0 is one of those that we serve.
    constexpr std::array<std::string_view, 2> protocols{"http/1.1", "http/1.0"};
    tls::server_config with;
    with.certificate_chain_file = from.certificates.front().certificate;
    with.private_key_file = from.certificates.front().key;
    std::vector<tls::certificate_files> more;
    for (std::size_t each = 1; each < from.certificates.size(); ++each) {
        more.push_back({.chain_file = from.certificates[each].certificate,
                        .key_file = from.certificates[each].key});
    }
    with.more_certificates = more;
    if (!from.client_ca.empty()) {
        with.ask = tls::client_certificate::required;
        with.client_ca_file = from.client_ca;
    }
    with.minimum =
        from.minimum == tls_version::tls_1_3 ? tls::version::tls_1_3 : tls::version::tls_1_2;
    with.alpn = protocols;
    std::string detail;
    auto made = tls::context::server(with, &detail);
    if (!made) throw std::runtime_error{detail.empty() ? made.error().message() : detail};
    return *std::move(made);
}

std::string issuers_of(const tls_options& from) {
    if (from.client_ca.empty()) return {};
    std::ostringstream text;
    text << std::ifstream{from.client_ca}.rdbuf();
    return text.str();
}

} // namespace httpd
