#pragma once
// proxy_test: a reverse proxy on a loop of its own, with a client and backends that speak by hand.

#include "http/server/http_test.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <poll.h>

namespace simplenet::v0::testing {

/// Where a backend listens that the test plays.
class raw_listener {
public:
    raw_listener()
        : fd_{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))} {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof address;
        checked(::bind(fd_.get(), any, size));
        checked(::listen(fd_.get(), 100));
        checked(::getsockname(fd_.get(), any, &size));
        const timeval limit{.tv_sec = 10, .tv_usec = 0};
        checked(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
        name_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    }

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] raw_peer accept() {
        return raw_peer{unique_fd{static_cast<int>(checked(
            restarted([&] { return ::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC); })))}};
    }
    [[nodiscard]] int fd() const { return fd_.get(); }
    /// Whether somebody has connected and was not accepted.
    [[nodiscard]] bool has_caller() {
        const timeval none{.tv_sec = 0, .tv_usec = 1};
        const timeval limit{.tv_sec = 10, .tv_usec = 0};
        checked(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none));
        const unique_fd caller{::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        checked(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
        return caller.get() >= 0;
    }
    /// Whoever connects is refused from now on.
    void close() { fd_.reset(); }

private:
    unique_fd fd_;
    std::string name_;
};

class proxy_test : public http_test {
protected:
    /// Passes everything on to the backends.
    void serve_proxy(http::proxy_options options = {}, http::server_options with = {},
                     std::initializer_list<const raw_listener*> to = {}) {
        std::vector<http::backend> all;
        for (const raw_listener* each : to)
            all.push_back({each->name()});
        if (all.empty()) all.push_back({backend_.name()});
        options.backends = all;
        http::router routes;
        routes.proxy("/", options);
        serve(std::move(routes), with);
    }

    [[nodiscard]] raw_listener& backend() { return backend_; }
    /// What the backend got, up to and with the empty line.
    static std::string receive_request(raw_peer& from) { return receive_until(from, "\r\n\r\n"); }
    /// The same on a new connection, which stays open.
    raw_peer take_request(std::string& head) {
        raw_peer from = backend_.accept();
        head = receive_request(from);
        return from;
    }
    /// Sends `request` on a new connection, and answers it with `answer`. Returns what the client
    /// gets until its connection ends.
    std::string exchange(std::string_view request, std::string_view answer) {
        raw_peer client = connect();
        client.send(request);
        client.shutdown_write();
        raw_peer at = take_request(seen_);
        at.send(answer);
        at.shutdown_write();
        return rest_of(client);
    }
    /// The head that the backend got for `request`.
    std::string head_for(std::string_view request) {
        static_cast<void>(exchange(request, "HTTP/1.1 204 No Content\r\n\r\n"));
        return seen_;
    }

private:
    raw_listener backend_;
    std::string seen_;
};

inline constexpr std::string_view get_root = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// What the proxy adds to the head of a request with "Host: h".
inline constexpr std::string_view added = "Via: 1.1 simplenet\r\n"
                                          "Forwarded: for=127.0.0.1;host=h;proto=http\r\n"
                                          "X-Forwarded-For: 127.0.0.1\r\n"
                                          "X-Real-IP: 127.0.0.1\r\n"
                                          "X-Forwarded-Proto: http\r\n"
                                          "X-Forwarded-Host: h\r\n";

inline std::string answer_of(std::string_view body, std::string_view fields = {}) {
    return "HTTP/1.1 200 OK\r\n" + std::string{fields} +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
}

} // namespace simplenet::v0::testing
