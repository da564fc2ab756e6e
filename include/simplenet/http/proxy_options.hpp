#pragma once
// http::proxy_options: how a reverse proxy passes requests on. Layer http.

#include <simplenet/core/abi.hpp>
#include <simplenet/http/backend.hpp>
#include <simplenet/http/fields.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

namespace simplenet::v0 {
class address_set;
} // namespace simplenet::v0

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// To whom requests are passed on, with which fields, and how long a backend may take. Everything
/// is copied by proxy_handler and router::proxy(). Sizes are bytes; times of 0 are no limit.
struct proxy_options {
    /// 1 to most_backends.
    std::span<const backend> backends{};

    /// Peers whose Forwarded, X-Real-IP and fields that begin with `X-Forwarded-` are
    /// passed on, with this hop added to the lists. From all others these fields are dropped, and
    /// the backend gets what the connection tells; so it does in place of a Forwarded with quotes
    /// that could swallow this hop. X-Real-IP is the client of request::set_peer(), if the program
    /// has told one. Null: nobody.
    const address_set* trusted = nullptr;
    /// Sent as Host. Empty: what the client sent.
    std::string_view host{};
    /// Fields that are set in every request; those of the client with the same name are dropped.
    /// Not those that frame a message, belong to a connection, or tell the client's address.
    std::span<const field> fields{};
    /// The pseudonym of this proxy in the field Via of requests: a token. Empty: no Via.
    std::string_view via = "simplenet";
    /// Whether fields with `_` in their name are passed on. CGI, WSGI, Rack and others take
    /// `X_User` for `X-User`, so a client could send a field that nobody has checked.
    bool underscores = false;

    /// For each backend and loop: how many unused connections are kept.
    std::size_t keep_connections = 8;
    /// For each backend and loop: the most connections, those of WebSockets not counted. At
    /// least 1. Further requests wait. A client waits, too, while it has as many as are free: it
    /// gets half of them at most (rounded up), so that others find one. Clients are told apart by
    /// request::peer(), those of IPv6 by its first 64 bits, and take turns.
    ///
    /// When an answer finds no room in `answer_ahead` and `answer_spool`, and its connection is
    /// needed (none is left and somebody waits, or the same client waits for one), answers are
    /// aborted whose clients take next to nothing for two seconds: less than 8 KiB, or so little
    /// that they would need two minutes for what is stored. These are the answer itself, and those
    /// that have more room there. Not if `streamed`.
    std::size_t connections = 128;

    /// Whether a request is passed on while it arrives. Otherwise its body is read whole before a
    /// backend is asked, so that a slow upload occupies none and can be repeated; and an answer is
    /// read ahead of a slow client, so that it releases its backend.
    bool streamed = false;
    /// Of a request's body, in memory; the rest goes to a file without a name. Unless `streamed`.
    std::size_t request_buffer = std::size_t{64} * 1024;
    /// How far an answer is read ahead, in memory. Unless `streamed`.
    std::size_t answer_ahead = std::size_t{1024} * 1024;
    /// Limits the memory of all answers of this handler together. Not counted are 16 KiB of each,
    /// and 80 KiB more of one that is in a file. An answer has at most half of what is left; what
    /// finds no room goes to `answer_spool`.
    std::size_t answer_memory = std::size_t{64} * 1024 * 1024;
    /// Further bytes of all answers of this handler together, in unlinked files. None takes more
    /// than it leaves to others. Less than 128 KiB: none. A file that cannot be made or written
    /// costs nothing but this room. Unless `streamed`.
    std::size_t answer_spool = std::size_t{1024} * 1024 * 1024;
    /// For those files. Empty: TMPDIR, or /tmp.
    std::string_view temporary_directory{};

    /// For connecting, including the lookup of a name.
    std::chrono::nanoseconds connect = std::chrono::seconds{5};
    /// For a connection, when all of them are in use. Then 503.
    std::chrono::nanoseconds wait = std::chrono::seconds{10};
    /// How long the backend may acknowledge no byte of the request. A kernel with a full receive
    /// buffer acknowledges only after the backend has read a good part of it. Then 504; but an
    /// answer whose head is complete goes on, and no more of the request is sent.
    std::chrono::nanoseconds send_idle = std::chrono::seconds{60};
    /// From the end of a request to the head of its answer. Then 504.
    std::chrono::nanoseconds head = std::chrono::seconds{60};
    /// Without a byte of the answer's body. Then the answer is aborted.
    std::chrono::nanoseconds body_idle = std::chrono::seconds{60};
    /// Without a byte in either direction of a WebSocket.
    std::chrono::nanoseconds websocket_idle = std::chrono::minutes{10};
    /// An unused connection is kept for so long. Shorter than the backend's own limit, it avoids
    /// that a request crosses the end of its connection.
    std::chrono::nanoseconds keep_alive = std::chrono::seconds{30};
    /// How long a backend is left out after it has failed.
    std::chrono::nanoseconds retry_after = std::chrono::seconds{10};

    /// The status line of an answer; all of its fields; their number, at least 1.
    std::size_t status_line = std::size_t{8} * 1024;
    std::size_t header_bytes = std::size_t{32} * 1024;
    std::size_t header_count = 100;

    /// Told what people should know. Null: nobody.
    gateway_reporter report = nullptr;
    /// The second argument of `report`.
    void* context = nullptr;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
