// A user's program with TLS: half of it fails, which needs OpenSSL to say why.
#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <cstdio>
#include <string>

using namespace simplenet;

int main() {
    const result<tls::context> client = tls::context::client();
    if (!client) {
        std::fprintf(stderr, "no context: %s\n", client.error().message().c_str());
        return 1;
    }
    std::string detail;
    const result<tls::context> server = tls::context::server(
        {.certificate_chain_pem = "no certificate", .private_key_pem = "no key"}, &detail);
    if (server || detail.empty()) {
        std::fputs("a server with garbage for a certificate\n", stderr);
        return 1;
    }
    std::printf("%s: %s\n", server.error().message().c_str(), detail.c_str());
}
