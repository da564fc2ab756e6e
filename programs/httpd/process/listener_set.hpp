#pragma once
// httpd::listener_set: the HTTP servers of the process, one for each address.

#include "httpd/config/configuration.hpp"
#include "httpd/process/passed_sockets.hpp"
#include "httpd/serve/sites.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/server.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/runtime/event_loop_group.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
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

/// Belongs to the main thread and its loop, but for all_figures(): any thread.
class listener_set {
public:
    /// @param group  Outlives this.
    listener_set(simplenet::event_loop_group& group, const answer_observer& observer) noexcept
        : group_{group}
        , observer_{observer} {}

    /// Serves `with` by `what`. Addresses that are served already go on without losing a
    /// connection: from its next request on each is served by the new configuration. An address
    /// whose kind has changed (TLS, PROXY protocol) gets a new server on the same sockets; the old
    /// one ends as shutdown() does, and so do those of addresses that are no longer wanted.
    ///
    /// Throws std::runtime_error or std::system_error if a certificate cannot be used or an address
    /// not be listened at; what() says which. Then everything is as it was.
    ///
    /// @param passed  What is at its address is used in place of a new socket.
    void serve(const configuration& with, const std::shared_ptr<const sites>& what,
               passed_sockets& passed);

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

private:
    struct served {
        listener is;
        std::unique_ptr<simplenet::http::server> server;
    };
    struct planned;

    [[nodiscard]] planned plan(const configuration& with, const listener& at,
                               passed_sockets& passed, const std::shared_ptr<const sites>& what);
    /// Lets what no server needs any more go.
    void forget_ended();

    simplenet::event_loop_group& group_;
    const answer_observer observer_;
    mutable std::mutex mutex_; // for changes of served_, and for others that read it
    std::vector<served> served_;
    std::vector<std::unique_ptr<simplenet::http::server>> ending_;
};

} // namespace httpd
