#pragma once
// tcp_client: a connection that is made again whenever it is lost. Layer stream.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/detail/safe_in_co_await.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/backoff.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

namespace detail {
struct client_access;

/// A callable that serves a connection.
template <class Session>
concept client_session = requires(Session& session, tcp_stream& stream) {
    { session(stream) } -> std::same_as<task<result<>>>;
};
} // namespace detail

inline namespace runtime {

/// How a tcp_client connects, and when it tries again.
struct client_options {
    /// The pauses between attempts.
    simplenet::backoff backoff = {};
    /// For each attempt. Without a timeout, an address that does not answer takes two minutes.
    connect_options connect = {};
    /// A connection that has lasted so long counts as a success: after it the back-off starts anew.
    /// So a server that accepts and then closes is not besieged.
    std::chrono::nanoseconds stable_after = std::chrono::seconds{10};
};

/// What a tcp_client tells about its connections.
struct client_event {
    /// What happened.
    enum class kind : std::uint8_t {
        connected,      ///< The session begins.
        connect_failed, ///< Another attempt follows.
        disconnected,   ///< The session ended with an error; another attempt follows.
    };
    using enum kind;

    enum kind kind = connected; ///< What happened.
    std::error_code error;      ///< Of the attempt or of the session; none if connected.
    /// The number of the attempt, from 1; counted anew after a connection that was stable.
    std::size_t attempt = 0;
    std::chrono::nanoseconds next_delay{}; ///< Until the next attempt; 0 if connected.
};

/// A client that stays connected: it connects, lets a session use the connection, and connects
/// again whenever the connection cannot be made or is lost, with growing random pauses.
///
/// Owns nothing but its settings: the connection belongs to run(). The client outlives run() and
/// must not be moved meanwhile. Several run() may be awaited at once; each has its own connection
/// and pauses. Loop thread only.
///
/// @par Example
/// @snippet clients.cpp client
class tcp_client {
public:
    /// @param host  A name or an address, looked up for each attempt.
    /// @pre No duration of the back-off is negative, and its factor is at least 1; checked by
    ///      run().
    tcp_client(std::string host, std::uint16_t port, client_options options = {})
        : host_{std::move(host)}
        , port_{port}
        , options_{options} {}

    /// Called for each event, if it is not empty, before anything follows from the event. An
    /// exception that leaves it leaves run(). It must neither be replaced nor destroyed while it is
    /// running.
    std::function<void(const client_event&)> on_event;

    /// Connects, awaits `session(stream)`, and begins again until a session succeeds.
    ///
    /// @param session  A callable that takes a `tcp_stream&` and returns `task<result<>>`. It is
    ///                 copied or moved into the task; a callable that cannot be copied and is
    ///                 passed as an lvalue is borrowed. It is called once for each connection.
    ///                 Success ends run(). Any error means: connect again. The connection is closed
    ///                 when the session ends.
    /// @return Success: a session succeeded.
    ///
    /// @par Errors
    /// Only those of a stop, operation_canceled or deadline_exceeded. Errors of connecting, such as
    /// `errc::name_not_found`, lead to the next attempt: they are reported to `on_event`.
    /// An exception that leaves the session or `on_event` closes the connection and leaves run().
    /// It is a bug rather than a lost connection, and connecting again would hide it.
    /// @par Cancellation
    /// At any moment: while it connects, in the session (whose operations are stopped, and which is
    /// joined), and in a pause. No event reports it. A session that succeeds nevertheless is a
    /// success.
    /// @par Cost
    /// Two coroutines in addition to those of async_connect() and of the session.
    template <class Session>
        requires detail::client_session<std::remove_reference_t<Session>>
    [[nodiscard]] task<result<>> run(Session&& session) {
        static_assert(detail::safe_in_co_await<Session>,
                      "GCC 12 destroys the captures of this closure twice inside a co_await "
                      "expression: name it, and pass the name without std::move (auto session = "
                      "[...] {...}; co_await client.run(session))");
        return keep_session<detail::kept<Session>>(*this, std::forward<Session>(session));
    }

private:
    friend detail::client_access;
    using start_session = task<result<>> (*)(void* session, tcp_stream& stream);

    template <class Session>
    static task<result<>> keep_session(tcp_client& client, Session session) {
        using kept = std::remove_reference_t<Session>;
        const auto start = [](void* kept_session, tcp_stream& stream) {
            return (*static_cast<kept*>(kept_session))(stream);
        };
        co_return co_await client.stay_connected(start, std::addressof(session));
    }
    task<result<>> stay_connected(start_session start, void* session);
    void tell(const client_event& event) const {
        if (on_event) on_event(event);
    }

    std::string host_;
    std::uint16_t port_;
    client_options options_;
    std::optional<std::uint32_t> seed_; // of the pauses, for tests
};

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
