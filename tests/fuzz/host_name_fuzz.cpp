// Hosts and services before any lookup: a text that this library treats as a name must not be an
// address to the C library, which would connect to it despite the program's checks.

#include "fuzz/fuzz.hpp"
#include "ip/native.hpp"
#include "net/host_name.hpp"

#include <memory>
#include <string>

#include <netdb.h>

namespace simplenet::v0::fuzz {
namespace {

/// The result of getaddrinfo(3) without any lookup.
result<endpoint> numeric(const char* host, const char* service) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host, service, &hints, &found) != 0) return fail(errc::name_not_found);
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
    return detail::endpoint_from_native(found->ai_addr, found->ai_addrlen);
}

void check_host(const std::string& text) {
    const auto host = detail::read_host(text);
    if (!host) return;

    const auto expected = numeric(text.c_str(), "80");
    if (!host->address) {
        FUZZ_CHECK(host->name == text && text.find('\0') == std::string::npos);
        FUZZ_CHECK(!expected);
    } else if (expected) {
        FUZZ_CHECK(expected->address() == *host->address);
    } else {
        // It accepts a zone for link-local addresses only.
        FUZZ_CHECK(host->address->scope_id() != 0 || text.find('%') != std::string::npos);
    }
}

void check_service(const std::string& text) {
    const auto service = detail::read_service(text);
    if (!service) return;

    FUZZ_CHECK(text.find('\0') == std::string::npos);
    const auto expected = numeric("127.0.0.1", text.c_str());
    FUZZ_CHECK(expected.has_value() == service->has_value());
    if (expected) FUZZ_CHECK(expected->port() == **service);
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text{reinterpret_cast<const char*>(data), size};
    simplenet::fuzz::check_host(text);
    simplenet::fuzz::check_service(text);
    return 0;
}
