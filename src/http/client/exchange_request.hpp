#pragma once
// exchange_request: a request as it leaves, and what that means for its answer. Layer http,
// private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/http/async_reader_ref.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace simplenet::v0::http::detail {

/// What a client_exchange sends: written by a client, or by a proxy that passes a request on.
struct exchange_request {
    std::string method;
    std::string url; // for the caller only
    std::string head;
    const_buffer body; // borrowed
    async_reader_ref stream;
    std::optional<std::uint64_t> content_length; // of `stream`; none: it leaves in chunks
    bool is_secure = false;                      // leaves over TLS
    bool expect_continue = false;                // the head asks for 100 Continue
    bool closes = false;                         // the connection ends behind the answer
    bool decompresses = false;                   // the head asks for a compression
    bool upgrades = false;                       // the answer may be 101
};

} // namespace simplenet::v0::http::detail
