#pragma once
// http::fastcgi_handler: passes requests to FastCGI applications, such as PHP. Layer http.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/backend.hpp>
#include <simplenet/http/fields.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/http/static_options.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace simplenet::v0 {
class address_set;
} // namespace simplenet::v0

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class fastcgi_core;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// How requests are passed to a FastCGI application. All texts are copied.
struct fastcgi_options {
    /// The servers, such as `{"unix:/run/php/php-fpm.sock"}`. At least one.
    std::span<const backend> backends{};

    /// The directory with the scripts: DOCUMENT_ROOT, which is made absolute and free of `..`, as
    /// PHP wants it. Empty, and `script_root` too: an application without scripts, see
    /// fastcgi_handler.
    std::string_view root{};
    /// The directory with the scripts as the backend sees it, if that is another one, as in a
    /// container or on another machine. Then DOCUMENT_ROOT and SCRIPT_FILENAME begin with it. If it
    /// exists here, scripts are looked for in it; if not, they cannot be checked, and the backend
    /// is asked for any path with the form of a script.
    std::string_view script_root{};
    /// The script for a directory: a path that ends in a slash and has no script in it. Empty: 404.
    std::string_view index = "index.php";
    /// Which symbolic links may lead to a script.
    symlinks follow = symlinks::beneath;
    /// Whether a path may go on behind its script; what follows is PATH_INFO. Otherwise: 404.
    bool path_info = false;

    /// SERVER_NAME. Never from the request: a client could choose it. Empty: the address to which
    /// the client has connected.
    std::string_view server_name{};
    /// Peers whose Forwarded, `X-Forwarded-*` and X-Real-IP become variables. Those of others say
    /// whatever a client likes, and scripts believe them. A Forwarded whose quotes are not in order
    /// is left out, and X-Real-IP is the client of request::set_peer(), if the program has told
    /// one. nullptr: nobody's.
    const address_set* trusted = nullptr;
    /// Further variables. They win over those of the request.
    std::span<const field> params{};

    /// Sends the body of a request while it arrives. Otherwise it is read whole before a backend is
    /// taken, so that slow clients occupy none. A body whose size the client has not told is always
    /// read whole, because CONTENT_LENGTH precedes it.
    bool streamed = false;
    /// Bytes of a body that are kept in memory; what is beyond them goes to an unlinked file.
    std::size_t request_buffer = std::size_t{64} * 1024;
    /// Bytes of an answer that are read ahead of a slow client, so that the backend is done
    /// sooner. Used even if `streamed`.
    std::size_t answer_ahead = std::size_t{1024} * 1024;
    /// Limits the memory of all answers of this handler together. Not counted are 16 KiB of each,
    /// and 80 KiB more of one that is in a file. An answer has at most half of what is left; what
    /// finds no room goes to `answer_spool`.
    std::size_t answer_memory = std::size_t{64} * 1024 * 1024;
    /// Further bytes of all answers of this handler together, in unlinked files, unless `streamed`.
    /// None takes more than it leaves to others. Less than 128 KiB: none. A file that cannot be
    /// made or written costs nothing but this room.
    std::size_t answer_spool = std::size_t{1024} * 1024 * 1024;
    /// How long a client may take nothing (acknowledge less than 8 KiB) while its answer finds no
    /// room, so that the backend waits for it. Then the answer is aborted. The limit is two
    /// seconds, whatever is set, while others have waited that long for a process, or while its
    /// connection is needed: none is left and somebody waits, or the same client waits for one. A
    /// client takes nothing then, too, if it would need two minutes for what is stored; and this
    /// holds for all answers that have more room in `answer_spool` than the one that finds none.
    /// 0: no limit but that and the server's. Not used if `streamed`.
    std::chrono::nanoseconds answer_hold{0};
    /// For those files. Empty: TMPDIR, or /tmp.
    std::string_view temporary_directory{};

    // For each backend and loop.

    /// Idle connections that are kept for `idle`. Each occupies a process of PHP-FPM meanwhile, so
    /// none is kept when a request on a new connection has waited for 5 ms: it may be waiting for a
    /// process. 0: a connection for each request.
    std::size_t keep_connections = 8;
    /// Connections in all. At least 1. Further requests wait. A client waits, too, while it has as
    /// many as are free: it gets half of them at most (rounded up), so that others find one.
    /// Clients are told apart by request::peer(), those of IPv6 by its first 64 bits, and take
    /// turns.
    std::size_t connections = 128;

    // Time limits; 0: none, but for `wait`.

    /// To connect. Then 504.
    std::chrono::nanoseconds connect = std::chrono::seconds{5};
    /// To wait for one of `connections`. Then 503.
    std::chrono::nanoseconds wait = std::chrono::seconds{10};
    /// How long the backend may acknowledge no byte of the request. A kernel with a full receive
    /// buffer acknowledges only after the backend has read a good part of it. Then 504; but an
    /// answer whose head is complete goes on, and no more of the request is sent.
    std::chrono::nanoseconds send_idle = std::chrono::seconds{60};
    /// From the end of the request to the head of the answer. Then 504.
    std::chrono::nanoseconds head_within = std::chrono::seconds{60};
    /// Without a byte of the body of the answer. Then the answer is aborted.
    std::chrono::nanoseconds body_idle = std::chrono::seconds{60};
    /// An idle connection is closed after so long.
    std::chrono::nanoseconds idle = std::chrono::milliseconds{10};

    /// Called with what the backends write for people, and with their failures.
    gateway_reporter report = nullptr;
    void* report_context = nullptr;
};

/// Passes requests to a FastCGI application, and its answers to the clients.
///
/// A cheap handle: copies share one gateway, with its backends and connections. Each loop has
/// connections of its own. A handler for router::any(), or called by one:
/// it serves request::path(), whatever the target was.
///
/// **Scripts** (with a root): the script is the shortest prefix of the path that ends in `.php` at
/// the end of a segment and is a regular file beneath the root. Without one the answer is 404, and
/// no backend is asked: `/image.jpg/x.php` never runs an image. A path with an encoded slash is
/// 404. What is known of a script is used for a second. The backend opens the script by its name,
/// so whoever can change the files can change what it opens.
///
/// **Applications** (without a root): SCRIPT_NAME is the prefix, PATH_INFO the rest of the path.
///
/// **Requests** have the variables of RFC 3875 and those that PHP needs. Fields become variables
/// whose names begin with `HTTP_`, those with equal names joined, except for `Proxy`, for fields of
/// the connection, for names with anything but letters, digits and `-`, which could become those of
/// others, and for what a client that is not trusted says of whom it is asking for (see `trusted`).
///
/// **Answers** are parsed as RFC 3875 says. `X-Accel-Redirect` and `X-Sendfile` are not supported,
/// and dropped. A `Location` without a status redirects the client with 302, also if it is a path.
///
/// **Failures**: 502 if no backend can be reached, or the answer is not one; 504 after a time
/// limit; 503 if there is no place. A request is repeated on another connection if nothing of an
/// answer has come, and either its method is idempotent (RFC 9110, section 9.2.2) or no backend has
/// got any of it. An answer that began and did not end is aborted, so that it does not look
/// complete.
///
/// Any thread.
///
/// @par Example
/// @snippet http_fastcgi.cpp fastcgi
class fastcgi_handler {
public:
    /// @param options  Copied.
    /// @param prefix   SCRIPT_NAME of an application without scripts; otherwise ignored. A slash at
    ///                 its end makes no difference.
    ///
    /// Throws std::system_error: `std::errc::invalid_argument` for an address that is not
    /// well-formed; that of open(2) if `root` is needed and cannot be opened.
    explicit fastcgi_handler(const fastcgi_options& options, std::string_view prefix = {});
    fastcgi_handler(const fastcgi_handler& other) noexcept;
    fastcgi_handler(fastcgi_handler&& other) noexcept;
    fastcgi_handler& operator=(const fastcgi_handler& other) noexcept;
    fastcgi_handler& operator=(fastcgi_handler&& other) noexcept;
    ~fastcgi_handler();

    /// Answers the request, with a line of text where the backend has no answer.
    ///
    /// @pre This object outlives the task.
    /// @par Errors
    /// - `errc::gateway_failed`: the answer was aborted.
    /// - Those of request::read_some() and response::send().
    [[nodiscard]] task<result<>> operator()(request& asked, response& answer) const;

    /// As operator(), but leaves failures to the caller.
    ///
    /// @return 0: the request was answered. Otherwise nothing was, and this is the status that the
    ///         answer should have: 403, 404, 413, 500, 502, 503, 504, 507.
    [[nodiscard]] task<result<unsigned>> attempt(request& asked, response& answer) const;

    /// The backends, in the order of the options.
    [[nodiscard]] std::vector<backend_status> backends() const;

private:
    std::shared_ptr<const detail::fastcgi_core> core_;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
