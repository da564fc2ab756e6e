#pragma once
// http::router: which handler answers which request. Layer http.

#include <simplenet/http/detail/route_handler.hpp>
#include <simplenet/http/detail/websocket_handler.hpp>
#include <simplenet/http/fastcgi.hpp>
#include <simplenet/http/proxy_options.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/http/static_options.hpp>
#include <simplenet/http/websocket.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class route_table;
struct router_access;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// What holds for one route.
struct route_options {
    /// Bytes, in place of limits::body; 0: unlimited.
    std::optional<std::uint64_t> body = {};
};

/// Routes from a method and a path to a handler.
///
/// A handler is a callable that takes `(request&, response&)` and returns `task<>`,
/// `task<result<>>`, or `now_or_task<result<>>`. It is copied or moved into the router, and called
/// on any of the loops, by several at once: what it changes needs a lock or an atomic. A coroutine
/// lambda may use its captures, because the router outlives the call.
///
/// A pattern begins with `/`. Its segments are text, or `{name}` for any one segment that is not
/// empty; the last may be `{name...}` for the rest of the path, which may be empty. The most
/// specific pattern wins: segments are compared from left to right, text is more specific than
/// `{name}`, and `{name}` more than `{name...}`. Patterns are compared with request::path(), with
/// case.
///
/// A request is answered by
/// 1. the handler of its pattern and method; that of GET also answers HEAD;
/// 2. if its pattern has other methods only: 204 with Allow to OPTIONS; 405 with Allow to methods
///    that another route has, or that RFC 9110 or RFC 5789 defines; 501 to all others;
/// 3. if no pattern matches: the fallback; without one 204 to `OPTIONS *`, else 404.
///
/// Functions throw std::bad_alloc. Copies share their handlers. Any thread, one at a time.
///
/// @par Example
/// @snippet http.cpp routes
class router {
public:
    router();
    router(const router& other);
    router(router&& other) noexcept;
    router& operator=(const router& other);
    router& operator=(router&& other) noexcept;
    ~router();

    /// Adds a route.
    ///
    /// @pre `pattern` is well-formed, has at most 16 parameters with different names, and has no
    ///      handler for this method yet.
    template <detail::handles_requests Handler>
    router& get(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
        return route("GET", pattern, std::forward<Handler>(handler), options);
    }
    /// As get().
    template <detail::handles_requests Handler>
    router& head(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
        return route("HEAD", pattern, std::forward<Handler>(handler), options);
    }
    /// As get().
    template <detail::handles_requests Handler>
    router& post(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
        return route("POST", pattern, std::forward<Handler>(handler), options);
    }
    /// As get().
    template <detail::handles_requests Handler>
    router& put(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
        return route("PUT", pattern, std::forward<Handler>(handler), options);
    }
    /// As get(), for DELETE.
    template <detail::handles_requests Handler>
    router& del(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
        return route("DELETE", pattern, std::forward<Handler>(handler), options);
    }
    /// As get().
    template <detail::handles_requests Handler>
    router& patch(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
        return route("PATCH", pattern, std::forward<Handler>(handler), options);
    }
    /// As get().
    template <detail::handles_requests Handler>
    router& options(std::string_view pattern, Handler&& handler,
                    const route_options& options = {}) {
        return route("OPTIONS", pattern, std::forward<Handler>(handler), options);
    }
    /// As get(), for every method that has no handler of its own, but CONNECT.
    template <detail::handles_requests Handler>
    router& any(std::string_view pattern, Handler&& handler, const route_options& options = {}) {
        return route({}, pattern, std::forward<Handler>(handler), options);
    }
    /// As get(), for any method.
    ///
    /// @pre `method` is a token; empty: as any().
    template <detail::handles_requests Handler>
    router& route(std::string_view method, std::string_view pattern, Handler&& handler,
                  const route_options& options = {}) {
        return add(method, pattern, detail::make_route_handler(std::forward<Handler>(handler)),
                   options);
    }

    /// Serves the files beneath `directory`: `prefix` + `a/b` is the file `a/b` there. Answers GET
    /// and HEAD, with conditions, ranges and precompressed files. A directory without a slash
    /// behind it is redirected to the one with a slash.
    ///
    /// Nothing outside of `directory` is served, whatever the encoding of a path, symbolic links,
    /// or what others rename meanwhile. What may block runs on the threads of run_blocking(),
    /// unless the file was asked for a moment ago.
    ///
    /// @param prefix  Begins with `/`; a slash at its end makes no difference.
    /// @param directory  Opened by the call, which throws std::system_error if that fails.
    /// @param options  Copied.
    router& files(std::string_view prefix, std::string_view directory,
                  const static_options& options = {});

    /// Passes requests for `prefix` and every path beneath it on to backends over HTTP/1.1, as a
    /// proxy_handler does, whatever the method. The path goes on with its prefix.
    ///
    /// Throws std::system_error as the constructor of proxy_handler. A program that wants the state
    /// of the backends adds a proxy_handler by any() instead.
    ///
    /// @param prefix  Begins with `/`; a slash at its end makes no difference.
    /// @param options  Copied.
    /// @par Example
    /// @snippet http_proxy.cpp router
    router& proxy(std::string_view prefix, const proxy_options& options);

    /// Passes requests with any method to a FastCGI application, see fastcgi_handler.
    ///
    /// With a root, `prefix` + `a.php` is the script `prefix` + `a.php` beneath it: a prefix is
    /// part of the path of a script, unlike with files(), since scripts tell where they are by
    /// DOCUMENT_ROOT and SCRIPT_NAME.
    ///
    /// @param prefix  Begins with `/`; a slash at its end makes no difference.
    /// @param options  Copied. Throws as fastcgi_handler does.
    router& fastcgi(std::string_view prefix, const fastcgi_options& options);

    /// Adds a route for WebSockets. The handler is called after the handshake, with `(websocket&)`
    /// or `(request&, websocket&)`, and returns `task<>` or `task<result<>>`. When it ends, the
    /// WebSocket is closed with code 1000, or 1011 if the handler failed.
    ///
    /// A request that is no WebSocket handshake is answered with 426, and one from a page of
    /// another origin with 403 unless websocket_options::origins has it. To refuse others, or to
    /// add fields to the answer, use a handler of get() and response::accept_websocket().
    ///
    /// @param options  Copied.
    ///
    /// @par Cost
    /// A handler of `(request&, websocket&)` keeps the memory of its request until it ends: 5 KiB,
    /// or more if the head is larger or limits::header_count is. Any other handler keeps nothing
    /// of it.
    /// @par Example
    /// @snippet http.cpp websocket request
    template <detail::handles_websockets Handler>
    router& websocket(std::string_view pattern, Handler&& handler,
                      const websocket_options& options = {}) {
        return add_websocket(
            pattern, detail::make_websocket_handler(std::forward<Handler>(handler)), options);
    }

    /// Answers what no pattern matches, and `*`, whatever the method, but CONNECT.
    ///
    /// @pre There is no fallback yet.
    template <detail::handles_requests Handler>
    router& fallback(Handler&& handler, const route_options& options = {}) {
        return add_fallback(detail::make_route_handler(std::forward<Handler>(handler)), options);
    }

private:
    friend detail::router_access;

    router& add(std::string_view method, std::string_view pattern,
                std::shared_ptr<detail::route_handler> handler, const route_options& options);
    router& add_websocket(std::string_view pattern,
                          std::shared_ptr<detail::websocket_handler> handler,
                          const websocket_options& options);
    router& add_fallback(std::shared_ptr<detail::route_handler> handler,
                         const route_options& options);

    std::unique_ptr<detail::route_table> table_; // null after a move
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
