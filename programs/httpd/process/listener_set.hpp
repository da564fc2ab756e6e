#pragma once
// httpd::listener_set: the HTTP servers of the process, one for each address.

#include "httpd/config/configuration.hpp"
#include "httpd/process/listening_sockets.hpp"
#include "httpd/process/passed_sockets.hpp"
#include "httpd/serve/sites.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/router.hpp>
#include <simplenet/http/server.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/runtime/event_loop_group.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#if SIMPLENET_HTTPD_TLS
#include <simplenet/tls/context.hpp>
#endif

namespace httpd {

/// Who is told about each request.
struct answer_observer {
    void (*on_answered)(const simplenet::http::answered_request&, void*) noexcept = nullptr;
    void* context = nullptr;
};

/// An address as in the configuration, and sockets that listen at it.
struct address_sockets {
    std::optional<simplenet::endpoint> at;
    listening_sockets sockets;
};

/// Belongs to the main thread and its loop, but for all_figures(): any thread.
class listener_set {
public:
    /// @param group  Outlives this.
    listener_set(simplenet::event_loop_group& group, const answer_observer& observer) noexcept
        : group_{group}
        , observer_{observer} {}

    class change;

    /// Everything of a change that can fail; what is served stays as it is.
    ///
    /// Throws std::runtime_error or std::system_error if a certificate cannot be used or an address
    /// not be listened at; what() says which.
    ///
    /// @param passed  A copy of what is at its address is used in place of a new socket.
    /// @param left  Sockets that another server of this process leaves, likewise.
    [[nodiscard]] change prepare(const configuration& with,
                                 const std::shared_ptr<const sites>& what,
                                 const passed_sockets& passed, address_sockets left);
    /// Serves `next`. Addresses that are served already go on without losing a connection: from its
    /// next request on each is served by the new configuration. An address whose kind has changed
    /// (TLS, the issuer of its clients, PROXY protocol) gets a new server on the same sockets; the
    /// old one ends as shutdown() does, and so do those of addresses that are no longer wanted.
    ///
    /// @pre Nothing was committed since `next` was prepared.
    void commit(change next);

    /// Copies of the sockets of the listener at `at`, an address as in the configuration; empty:
    /// there is none.
    ///
    /// @par Errors
    /// - Those of http::server::duplicate_listeners().
    [[nodiscard]] simplenet::result<listening_sockets>
    copy_sockets(const simplenet::endpoint& at) const;

    /// Ends all servers.
    [[nodiscard]] simplenet::task<simplenet::shutdown_report>
    shutdown(std::chrono::nanoseconds grace);
    /// Lets a shutdown() in progress end at once.
    void cut() noexcept;

    struct figures {
        simplenet::endpoint address; ///< With the port that was chosen.
        bool secure = false;
        simplenet::http::server_statistics statistics;
    };
    /// Of each listener, in the order of the configuration.
    [[nodiscard]] std::vector<figures> all_figures() const;
    /// Waits until the servers that commit() has ended accept nothing any more, for a second at
    /// most. Until then a new connection may still be one of theirs.
    [[nodiscard]] simplenet::task<> ended_accepting() const;

private:
    struct served {
        listener is;
        std::string issuers; // the certificates of client_ca
        std::unique_ptr<simplenet::http::server> server;
    };
    struct planned;

    /// Of the service manager, of another kind of server, of `left`, or new ones.
    [[nodiscard]] listening_sockets sockets_for(const listener& at, const passed_sockets& passed,
                                                address_sockets& left) const;
    [[nodiscard]] std::unique_ptr<simplenet::http::server> begin(planned& by);
    /// Lets what no server needs any more go.
    void forget_ended();

    simplenet::event_loop_group& group_;
    const answer_observer observer_;
    mutable std::mutex mutex_; // for changes of served_, and for others that read it
    std::vector<served> served_;
    std::vector<std::unique_ptr<simplenet::http::server>> ending_;
};

/// What is to be done for one address.
struct listener_set::planned {
    listener is;
    std::string issuers;
    served* goes_on = nullptr; // replaced in place; else there is a new server,
    listening_sockets sockets; // on these
    simplenet::http::router routes;
    simplenet::http::server_options options;
#if SIMPLENET_HTTPD_TLS
    std::optional<simplenet::tls::context> context; // of `options`
#endif
};

/// A configuration that can be served.
class listener_set::change {
    friend listener_set;
    std::vector<planned> plans_;
    std::chrono::nanoseconds grace_{0};
};

} // namespace httpd
