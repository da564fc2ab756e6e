#pragma once
// http_faults: faults in every call and completion of an HTTP server and its clients, and in every
// allocation of the server's loop: an answer is the right one, or an error, or does not look
// complete. Each kind of answer is a program, because they run at the same time.

#include "http/server/http_test.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::testing {

class http_server_faults_test : public fail_everywhere_test {
protected:
    void SetUp() override {
        fail_everywhere_test::SetUp();
        used = GetParam();
    }

public:
    static inline backend used = backend::epoll; // for the scenarios
};

inline const std::string& streamed_text() {
    static const std::string text = noise(40'000);
    return text;
}

inline task<result<>> stream_body(http::request&, http::response& answer) {
    for (std::string_view rest = streamed_text(); !rest.empty();) {
        const auto count = co_await answer.write_some(rest.substr(0, 7000));
        if (!count) co_return fail(count);
        rest.remove_prefix(*count);
    }
    co_return result<>{};
}

inline task<result<>> break_off(http::request&, http::response& answer) {
    const auto count = co_await answer.write_some("some");
    if (!count) co_return fail(count);
    co_return fail(std::errc::permission_denied);
}

/// A group exists before the faults. Allocations fail on its loop.
class serving_http : public fault_scenario {
public:
    [[nodiscard]] bool crosses_threads() const override { return true; }
    [[nodiscard]] event_loop* failing_loop() noexcept override { return &group_[0]; }

protected:
    /// Asks on a connection of its own.
    virtual task<result<std::string>> talk(endpoint at) = 0;

    /// Sends `text`, which asks for the end of the connection, and returns all that comes.
    static task<result<std::string>> ask(endpoint at, std::string_view text) {
        auto stream = co_await or_return(co_await async_connect(at));
        co_await or_return(co_await async_write_all(stream, text));
        std::string all;
        co_await or_return(co_await read_all(stream, all));
        if (all.empty()) co_return fail(std::errc::connection_aborted);
        co_return all;
    }
    /// Takes the answer at the beginning of `all`; an error: it is not complete, or is an error.
    static result<std::string> take_body(std::string& all) {
        const std::size_t end = all.find("\r\n\r\n");
        if (end == std::string::npos) return fail(http::errc::incomplete_message);
        if (!all.starts_with("HTTP/1.1 200 ")) return fail(std::errc::io_error);
        std::string body = all.substr(end + 4);
        const std::size_t length = all.find("\r\nContent-Length: ");
        if (length != std::string::npos && length < end) {
            std::size_t size = 0;
            std::from_chars(all.data() + length + 18, all.data() + end, size);
            if (body.size() < size) return fail(http::errc::incomplete_message);
            body.resize(size);
            all.erase(0, end + 4 + size);
        } else if (all.find("chunked") < end && !body.ends_with("\r\n0\r\n\r\n")) {
            return fail(http::errc::incomplete_message);
        }
        return body;
    }
    [[nodiscard]] int file() const { return ::fileno(file_.get()); }

    /// Set when the client has seen a reset. The server may not have ended the connection by then,
    /// and a shutdown without memory cuts it, so the number of those is not compared.
    bool is_reset_ = false;

private:
    http::router routes() {
        http::router made;
        made.post("/echo", echo_body).get("/stream", stream_body).get("/broken", break_off);
        made.get("/file", [this](http::request&, http::response& answer) -> task<result<>> {
            co_return co_await answer.send_file(file(), streamed_text().size());
        });
        return made;
    }
    task<result<std::string>> play() override {
        http::server_options options;
        options.server.on_handler_exception = [](std::exception_ptr, void*) {};
        auto server =
            co_await or_return(http::server::listen(group_, own_endpoint(), routes(), options));
        auto talking = talk(server.local_endpoint());
        const auto got = co_await std::move(talking);
        const shutdown_report report = co_await server.shutdown(std::chrono::hours{1});
        if (!got) co_return fail(got);
        const http::server_statistics at_end = server.statistics();
        const std::size_t cut = is_reset_ ? 0 : report.cut;
        co_return *got + told(cut, at_end.open, at_end.accepted - at_end.ended);
    }

    event_loop_group group_ = or_throw(
        event_loop_group::create({.loops = 1, .loop = {.backend = http_server_faults_test::used}}));
    owned_file file_ = temporary_file(streamed_text());
};

} // namespace simplenet::v0::testing
