#pragma once
// http::client_request: what a client asks for. Layer http.

#include <simplenet/core/buffer.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/http/fields.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// A request. client::send() copies `method`, `url` and `fields`; the body is borrowed.
struct client_request {
    /// A token; case counts. Not CONNECT.
    std::string_view method = "GET";
    /// Absolute, of the scheme http or https. A fragment is dropped.
    std::string_view url = {};
    /// Null: none. They leave behind Host, in their order.
    ///
    /// Content-Length, Transfer-Encoding, Expect, Upgrade, TE and Trailer are the client's own, and
    /// refused. `Connection` may be `close`, which ends the connection behind the answer, or
    /// `keep-alive`. A Host replaces that of the URL, except for the connection and for the
    /// certificate.
    const http::fields* fields = nullptr;
    /// Borrowed until the body of the answer has ended, or the client_response is destroyed: a
    /// server may answer while it reads.
    const_buffer body = {};
    /// A body that is read while it leaves, in place of `body`. Borrowed for as long. A read of it
    /// that is stopped must lose nothing, as those of this library; it is stopped whenever a part
    /// of the answer arrives first.
    async_reader_ref stream = {};
    /// The size of `stream`, of which no more is read. None: it leaves in chunks, until its
    /// end_of_stream.
    std::optional<std::uint64_t> content_length = std::nullopt;
    /// Sends the body only when the server asks for it, or has not answered within
    /// client_options::continue_within.
    bool expect_continue = false;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
