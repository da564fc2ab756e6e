#include "sys/names.hpp"

#include "ip/native.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

namespace simplenet::v0::detail::sys {

namespace {

class resolver_errors final : public std::error_category {
public:
    const char* name() const noexcept override { return "resolver"; }
    std::string message(int value) const override { return ::gai_strerror(value); }

    std::error_condition default_error_condition(int value) const noexcept override {
        return {static_cast<int>(meaning_of(value)), simplenet::error_category()};
    }

private:
    static errc meaning_of(int value) noexcept {
        switch (value) {
        case EAI_NONAME:  // no such name
        case EAI_SERVICE: // no such service
#ifdef EAI_NODATA
        case EAI_NODATA: // the name has no address of this family
#endif
#ifdef EAI_ADDRFAMILY
        case EAI_ADDRFAMILY: // a numeric address of the other family
#endif
            return errc::name_not_found;
        default:
            return errc::name_lookup_failed;
        }
    }
};

/// Whether the kernel has a route to `to`: connecting a UDP socket looks up a route and sends
/// nothing. This is the first rule of RFC 6724, section 6, as getaddrinfo(3) applies it.
bool has_route(const endpoint& to) noexcept {
    // Port 0 is invalid for a peer, and some kernels refuse it.
    const native_address address = to_native(endpoint{to.address(), 9});
    const int made = sys::socket(address.data()->sa_family, SOCK_DGRAM, 0, mode::blocking);
    if (made < 0) return made != -EAFNOSUPPORT; // no descriptor: unknown
    const unique_fd socket{made};
    return sys::connect(made, address.data(), address.size) == 0;
}

void free_answer(addrinfo* first) noexcept {
    constexpr auto release = [](addrinfo* list) noexcept {
        ::freeaddrinfo(list);
        return 0;
    };
    static_cast<void>(made<call::freeaddrinfo>(release, first));
}

int native_family(address_family family) noexcept {
    switch (family) {
    case address_family::any:
        return AF_UNSPEC;
    case address_family::v4:
        return AF_INET;
    case address_family::v6:
        return AF_INET6;
    }
    return AF_UNSPEC;
}

} // namespace

const std::error_category& resolver_category() noexcept {
    // Never destroyed: a thread may be in a lookup while the process ends.
    static const auto* const instance = new resolver_errors;
    return *instance;
}

std::error_code resolver_error(int outcome, int error_number) noexcept {
    if (outcome == EAI_MEMORY) return {ENOMEM, std::system_category()};
    // EAI_SYSTEM without an errno has been seen; an error code of 0 would count as success.
    if (outcome == EAI_SYSTEM && error_number != 0) return {error_number, std::system_category()};
    return {outcome, resolver_category()};
}

name_answer look_up(const name_question& question) {
    addrinfo hints{};
    hints.ai_family = native_family(question.family);
    hints.ai_socktype = question.datagram ? SOCK_DGRAM : SOCK_STREAM;
    addrinfo* found = nullptr;
    const char* const service = question.service.empty() ? nullptr : question.service.c_str();
    errno = 0;
    // In the form of a system call: -1 with an errno, or the negated EAI_.
    constexpr auto ask = [](const char* host, const char* port, const addrinfo* wanted,
                            addrinfo** into) noexcept {
        const int outcome = ::getaddrinfo(host, port, wanted, into);
        return outcome == EAI_SYSTEM ? -1 : -outcome;
    };
    const int outcome =
        made<call::getaddrinfo>(ask, question.host.c_str(), service, &hints, &found);
    const int error_number = errno;

    name_answer answer;
    if (outcome != 0) {
        answer.error = resolver_error(outcome < 0 ? EAI_SYSTEM : -outcome, error_number);
        return answer;
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned{found, free_answer};
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        const auto at = endpoint_from_native(each->ai_addr, each->ai_addrlen);
        if (at && std::ranges::find(answer.endpoints, *at) == answer.endpoints.end()) {
            answer.endpoints.push_back(*at);
        }
    }
    if (answer.endpoints.empty()) {
        answer.error = {EAI_NONAME, resolver_category()};
    } else {
        answer.reachable = has_route(answer.endpoints.front());
    }
    return answer;
}

result<std::uint32_t> interface_index(const std::string& name) noexcept {
    constexpr auto ask = [](const char* text) noexcept {
        const unsigned index = ::if_nametoindex(text);
        return index == 0 ? -1L : static_cast<long>(index);
    };
    const long index = made<call::if_nametoindex>(ask, name.c_str());
    if (index < 0) return fail(std::error_code{errno, std::system_category()});
    return static_cast<std::uint32_t>(index);
}

} // namespace simplenet::v0::detail::sys
