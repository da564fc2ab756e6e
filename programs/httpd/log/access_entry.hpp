#pragma once
// httpd::access_entry: what the access log and the figures are told about a request.

#include <simplenet/ip/endpoint.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace httpd {

/// A request that has been answered, or given up. The texts are borrowed for the call, and come
/// from outside: they may contain any byte.
struct access_entry {
    simplenet::endpoint peer;    ///< The client, as the proxy told it if that is trusted.
    std::string_view user;       ///< That has been authenticated; empty: nobody.
    std::string_view method;     ///< Empty if the request was not understood.
    std::string_view target;     ///< As the client wrote it.
    std::string_view host;       ///< That the client asked for.
    std::string_view referer;    ///< The field of the request; empty: none.
    std::string_view user_agent; ///< The field of the request; empty: none.
    unsigned version = 0;        ///< 10 or 11; 0: not understood.
    unsigned status = 0;         ///< 0: the connection ended before there was an answer.
    std::uint64_t body_bytes = 0;
    std::chrono::nanoseconds duration{0}; ///< From the first byte of the head to the end.
    bool complete = false;                ///< The whole answer was taken.
    bool secure = false;                  ///< By https, to this server or to a trusted proxy.
    std::string_view site;                ///< The first name of the site that has answered.
};

} // namespace httpd
