#pragma once
// http_test: an HTTP server on a loop of its own, and clients that speak by hand.

#include "support/served_group.hpp"

#include <simplenet/http.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0::testing {

class http_test : public served_test {
protected:
    void serve(http::router routes, http::server_options options = {}) {
        group_.emplace(make_group(1));
        server_.emplace(or_throw(
            http::server::listen(*group_, endpoint::loopback(0), std::move(routes), options)));
    }
    /// Another server on the same loop, which ends before the test does.
    [[nodiscard]] http::server serve_beside(http::router routes) {
        return or_throw(
            http::server::listen(*group_, endpoint::loopback(0), std::move(routes), {}));
    }
    void TearDown() override {
        end_loops();
        served_test::TearDown();
    }
    /// Ends the server and its loops, whatever is in progress.
    void end_loops() {
        server_.reset();
        group_.reset();
    }

    [[nodiscard]] http::server& server() { return *server_; }
    [[nodiscard]] raw_peer connect() { return served_test::connect(server_->local_endpoint()); }

    /// A client of that address, such as 127.0.0.2, whose kernel keeps about twice as many bytes
    /// for it; 0: as many as it likes.
    raw_peer connect_from(const char* address, int receive_buffer = 0) {
        unique_fd client{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
        if (receive_buffer != 0) {
            checked(::setsockopt(client.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer,
                                 sizeof receive_buffer));
        }
        sockaddr_in at{};
        at.sin_family = AF_INET;
        checked(::inet_pton(AF_INET, address, &at.sin_addr));
        checked(::bind(client.get(), reinterpret_cast<sockaddr*>(&at), sizeof at));
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.sin_port = htons(server().local_endpoint().port());
        checked(::connect(client.get(), reinterpret_cast<sockaddr*>(&at), sizeof at));
        return raw_peer{std::move(client)};
    }

    /// Sends `text`, ends its side, and returns all that comes, without Date fields.
    std::string ask(std::string_view text) {
        raw_peer client = connect();
        client.send(text);
        client.shutdown_write();
        return rest_of(client);
    }
    /// All that is left to come, without Date fields. Fails if the connection does not end.
    static std::string rest_of(raw_peer& client) {
        std::string all;
        for (;;) {
            const std::string part = client.receive(65536);
            all += part;
            if (part.size() < 65536) break; // the end, or the time limit of the socket
        }
        EXPECT_NE(client.peek(), -EAGAIN) << "the server has not ended the connection";
        return without_date(std::move(all));
    }
    /// Receives up to and with `end`.
    static std::string receive_until(raw_peer& client, std::string_view end) {
        std::string all;
        while (!all.ends_with(end)) {
            const std::string part = client.receive(1);
            if (part.empty()) break;
            all += part;
        }
        return all;
    }
    /// The head of an answer, with its empty line, without Date.
    static std::string receive_head(raw_peer& client) {
        return without_date(receive_until(client, "\r\n\r\n"));
    }
    static std::string without_date(std::string text) {
        for (std::size_t at = 0; (at = text.find("Date: ", at)) != std::string::npos;) {
            if (at == 0 || text[at - 1] == '\n') {
                text.erase(at, text.find("\r\n", at) + 2 - at);
            } else {
                ++at;
            }
        }
        return text;
    }

    shutdown_report shut_down(std::chrono::nanoseconds grace) {
        return simplenet::run(server_->shutdown(grace), {.backend = GetParam()});
    }

private:
    std::optional<event_loop_group> group_;
    std::optional<http::server> server_;
};

/// "HTTP/1.1 200 OK" and a small body, as a server with nothing else to say answers.
inline std::string plain_answer(std::string_view body, std::string_view more = {}) {
    return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n" + std::string{more} + "\r\n" + std::string{body};
}

/// Writes until the client, which must not read, and its kernel take no more. Up to 8 KiB stay in
/// the output. Returns the number of bytes.
inline task<std::size_t> write_until_full(http::response& answer) {
    using namespace std::chrono_literals;
    const std::string text(8000, 'x');
    std::size_t total = 0;
    bool is_full = false;
    while (!is_full) {
        task<result<std::size_t>> writing = answer.write_some(text);
        const auto count = co_await with_timeout(std::move(writing), 50ms);
        total += count.value_or(0);
        is_full = true;
        // A full socket takes more when its last segments are acknowledged, up to 200 ms later.
        for (int tries = 0; is_full && tries < 6; ++tries) {
            task<result<>> flushing = answer.flush();
            const auto flushed = co_await with_timeout(std::move(flushing), 50ms);
            is_full = !flushed;
        }
    }
    co_return total;
}

/// Answers with the body of the request.
inline task<result<>> echo_body(http::request& asked, http::response& answer) {
    auto body = co_await asked.read_all(std::size_t{1} << 20U);
    if (!body) co_return fail(body);
    co_return co_await answer.send("text/plain", *body);
}

/// Answers with method, path, query and host, a line each.
inline task<result<>> tell_request(http::request& asked, http::response& answer) {
    std::string text;
    for (const std::string_view each :
         {asked.method(), asked.path(), asked.query(), asked.host()}) {
        text.append(each).append("\n");
    }
    co_return co_await answer.send("text/plain", text);
}

} // namespace simplenet::v0::testing
