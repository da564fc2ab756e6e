#pragma once
// The system's resolver: getaddrinfo(3), which blocks, and names of interfaces, which do not. Layer
// sys, private.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/address_family.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace simplenet::v0::detail::sys {

/// A question for getaddrinfo(3). Equal questions have the same answer.
struct name_question {
    std::string host;
    std::string service;                         // empty: the endpoints get port 0
    address_family family = address_family::any; // one of the two: each is a separate question
    bool datagram = false;                       // services of UDP instead of TCP

    friend auto operator<=>(const name_question&, const name_question&) = default;
};

struct name_answer {
    std::error_code error; // of resolver_category(), or an errno
    std::vector<endpoint>
        endpoints;         // in the order of RFC 6724, without duplicates; empty only with an error
    bool reachable = true; // this machine has a route to the first one
};

/// The errors of getaddrinfo(3), by their numbers, with the messages of gai_strerror(3). As
/// conditions they are errc::name_not_found or errc::name_lookup_failed.
[[nodiscard]] const std::error_category& resolver_category() noexcept;

/// Blocks as long as the system's resolver does: half a minute or more without an answer.
[[nodiscard]] name_answer look_up(const name_question& question);

/// The error for a nonzero outcome of getaddrinfo(3); `error_number` is errno after it.
[[nodiscard]] std::error_code resolver_error(int outcome, int error_number) noexcept;

/// if_nametoindex(3): asks the kernel, without waiting.
[[nodiscard]] result<std::uint32_t> interface_index(const std::string& name) noexcept;

} // namespace simplenet::v0::detail::sys
