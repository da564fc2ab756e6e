#pragma once
// scripted_server: a server whose answers a test writes by hand, byte by byte, lies included. It
// runs on the loop of the client.

#include "support/backend_test.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/http.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/transfer.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// The answers on one connection, one after the other; then it ends.
using answers = std::vector<std::string>;

/// An answer with a body and its length.
inline std::string answer_with(std::string_view body, std::string_view fields = {}) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
           std::string{fields} + "\r\n" + std::string{body};
}
/// A redirect without a body.
inline std::string redirect_to(std::string_view where, unsigned status = 302) {
    return "HTTP/1.1 " + std::to_string(status) + " Moved\r\nLocation: " + std::string{where} +
           "\r\nContent-Length: 0\r\n\r\n";
}

class scripted_server {
public:
    scripted_server()
        : listener_{or_throw(tcp_listener::bind(endpoint::loopback(0)))} {}

    [[nodiscard]] std::string authority() const {
        return "127.0.0.1:" + std::to_string(or_throw(listener_.local_endpoint()).port());
    }
    [[nodiscard]] std::string url(std::string_view path = "/") const {
        return "http://" + authority() + std::string{path};
    }

    /// Serves a connection for each list of answers, one after the other. The last connection stays
    /// open if `stays`.
    task<> serve(std::vector<answers> connections, bool stays = false) {
        for (const answers& each : connections) {
            auto accepted = co_await listener_.accept();
            if (!accepted) co_return;
            ++accepted_count;
            tcp_stream stream = *std::move(accepted);
            for (const std::string& answer : each) {
                const bool asked = co_await take_request(stream);
                if (!asked) co_return;
                const auto sent = co_await async_write_all(stream, answer);
                if (!sent) co_return;
            }
            if (stays && &each == &connections.back()) co_await take_request(stream);
        }
    }
    /// The next connection, for scripts of other kinds.
    task<tcp_stream> accept() {
        auto accepted = co_await listener_.accept();
        ++accepted_count;
        co_return or_throw(std::move(accepted));
    }
    /// Receives a request with its body of known length. False: the connection has ended.
    task<bool> take_request(tcp_stream& from) {
        std::string text;
        std::size_t whole = std::string::npos;
        std::array<char, 4096> buffer;
        while (text.size() < whole) {
            const auto count = co_await from.read_some(mutable_buffer{buffer});
            if (!count) co_return false;
            text.append(buffer.data(), *count);
            const std::size_t end = text.find("\r\n\r\n");
            if (end != std::string::npos) whole = end + 4 + length_in(text);
        }
        requests.push_back(std::move(text));
        co_return true;
    }

    std::vector<std::string> requests; // as they came
    int accepted_count = 0;

private:
    static std::size_t length_in(std::string_view head) {
        constexpr std::string_view name = "Content-Length: ";
        const std::size_t at = head.find(name);
        std::size_t length = 0;
        if (at != std::string_view::npos) {
            std::from_chars(head.data() + at + name.size(), head.data() + head.size(), length);
        }
        return length;
    }

    tcp_listener listener_;
};

/// A client, and a server that the test scripts, on one loop.
class client_test : public backend_test {
protected:
    /// Runs `body(server, client)` while the server serves `connections`.
    template <class Body>
    void talk(std::vector<answers> connections, Body body, http::client_options options = {},
              bool stays = false) {
        run([&]() -> task<> {
            server_.emplace();
            http::client web{options};
            auto serving = spawn(server_->serve(std::move(connections), stays));
            co_await body(*server_, web);
            serving.request_stop();
            co_await serving;
        });
    }
    void TearDown() override {
        server_.reset(); // before the loop
        backend_test::TearDown();
    }

    /// The error of a GET, or of reading its body.
    static task<std::error_code> error_of_get(http::client& web, std::string url) {
        auto answer = co_await web.get(url);
        if (!answer) co_return answer.error();
        const auto body = co_await answer->read_all(SIZE_MAX);
        co_return error_of(body);
    }
    /// The body of a GET.
    static task<std::string> body_of_get(http::client& web, std::string url) {
        auto answer = co_await web.get(url);
        if (!answer) co_return "failed: " + answer.error().message();
        auto body = co_await answer->read_all(std::size_t{1} << 20U);
        co_return body ? *std::move(body) : "failed: " + body.error().message();
    }

private:
    std::optional<scripted_server> server_;
};

/// Whether `text` has the line, which ends in CRLF.
inline bool has_line(std::string_view text, std::string_view line) {
    return text.find("\r\n" + std::string{line} + "\r\n") != std::string_view::npos;
}

} // namespace simplenet::v0::testing
