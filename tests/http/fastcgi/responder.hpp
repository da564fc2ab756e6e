#pragma once
// responder: a FastCGI application that a test plays by hand, byte by byte, lies included.

#include "http/server/http_test.hpp"
#include "support/closed_port.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// A record of request 1.
inline std::string record(unsigned type, std::string_view content, std::size_t padding = 0) {
    const auto byte = [](std::size_t number) { return static_cast<char>(number & 0xffU); };
    std::string text{
        1, byte(type), 0, 1, byte(content.size() >> 8U), byte(content.size()), byte(padding), 0};
    text[0] = 1;
    return text.append(content).append(padding, '\0');
}
inline std::string out(std::string_view content, std::size_t padding = 0) {
    return record(6, content, padding);
}
inline std::string err(std::string_view content) {
    return record(7, content);
}
/// The end, with a protocol status and the status of the application.
inline std::string end(unsigned protocol = 0, unsigned application = 0, std::size_t padding = 0) {
    std::string content(8, '\0');
    content[3] = static_cast<char>(application);
    content[4] = static_cast<char>(protocol);
    return record(3, content, padding);
}
/// A complete answer in two records with padding.
inline std::string answer_of(std::string_view text) {
    return out(text, 3) + out("") + end(0, 0, 5);
}

struct received_record {
    unsigned type = 0; // 0: the connection has ended
    std::string content;
};

inline received_record take_record(raw_peer& from) {
    const std::string header = from.receive(8);
    if (header.size() != 8) return {};
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(header[at]); };
    received_record taken{.type = byte(1), .content = {}};
    taken.content = from.receive(static_cast<std::size_t>(byte(4)) * 256 + byte(5));
    static_cast<void>(from.receive(byte(6)));
    return taken;
}

/// A request as an application sees it.
struct received_request {
    bool keeps = false;
    std::map<std::string, std::string, std::less<>> params;
    std::string body;
    bool is_complete = false;

    [[nodiscard]] std::string param(std::string_view name) const {
        const auto found = params.find(name);
        return found == params.end() ? "(none)" : found->second;
    }
};

inline std::size_t take_length(std::string_view& text) {
    const auto byte = [&] {
        const auto first = static_cast<unsigned char>(text.front());
        text.remove_prefix(1);
        return std::size_t{first};
    };
    std::size_t length = byte();
    if (length < 128) return length;
    length &= 127U;
    for (int each = 0; each < 3; ++each)
        length = length << 8U | byte();
    return length;
}

/// Takes the records up to the body.
inline received_request take_params(raw_peer& from) {
    received_request request;
    const received_record begin = take_record(from);
    if (begin.type != 1) return request;
    request.keeps = begin.content[2] == 1;
    std::string all;
    for (;;) {
        const received_record params = take_record(from);
        if (params.type != 4) return request;
        if (params.content.empty()) break;
        all += params.content;
    }
    for (std::string_view rest = all; !rest.empty();) {
        const std::size_t name = take_length(rest);
        const std::size_t value = take_length(rest);
        request.params[std::string{rest.substr(0, name)}] = rest.substr(name, value);
        rest.remove_prefix(name + value);
    }
    return request;
}

/// Takes a whole request.
inline received_request take_request(raw_peer& from) {
    received_request request = take_params(from);
    for (;;) {
        const received_record in = take_record(from);
        if (in.type != 5) return request;
        request.body += in.content;
        request.is_complete = in.content.empty();
        if (request.is_complete) return request;
    }
}

/// What gateways have reported.
class reports {
public:
    struct entry {
        http::gateway_event kind;
        std::string backend;
        std::string text;
    };

    static void take(const http::gateway_report& what, void* context) {
        auto& self = *static_cast<reports*>(context);
        const std::lock_guard locked{self.mutex_};
        self.all_.push_back({what.kind, std::string{what.backend}, std::string{what.text}});
    }
    [[nodiscard]] std::vector<entry> all() const {
        const std::lock_guard locked{mutex_};
        return all_;
    }
    [[nodiscard]] std::size_t count(http::gateway_event kind) const {
        const std::vector<entry> now = all();
        return static_cast<std::size_t>(
            std::ranges::count_if(now, [kind](const entry& each) { return each.kind == kind; }));
    }
    [[nodiscard]] bool has(std::string_view text) const {
        const std::vector<entry> now = all();
        return std::ranges::any_of(
            now, [text](const entry& each) { return each.text.find(text) != each.text.npos; });
    }

private:
    mutable std::mutex mutex_;
    std::vector<entry> all_;
};

/// A server with a gateway, and a responder behind it that the test plays.
class responder_test : public http_test {
protected:
    void SetUp() override {
        http_test::SetUp();
        responder_.open();
        write("a.php", "<?php // source");
    }

    [[nodiscard]] static std::string address_of(const closed_port& port) {
        return "127.0.0.1:" + std::to_string(port.number());
    }
    /// Serves the scripts in root() at `/`.
    void serve_scripts(http::fastcgi_options options = {}) {
        const std::string address = address_of(responder_);
        const std::array backends{http::backend{address}};
        if (options.backends.empty()) options.backends = backends;
        const std::string root = root_path();
        if (options.root.empty() && options.script_root.empty()) options.root = root;
        options.idle = std::chrono::hours{1}; // longer than any test
        options.report = &reports::take;
        options.report_context = &reports_;
        http::router routes;
        routes.fastcgi("/", options);
        http::server_options with;
        with.limits.body = 0;
        serve(std::move(routes), with);
    }
    /// Sends until the other side ends the connection.
    static void send_in_vain(raw_peer& to, std::string_view text) {
        try {
            to.send(text);
        } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch)
        }
    }
    [[nodiscard]] std::string root_path() const { return folder_ / "root"; }
    void write(std::string_view name, std::string_view text) const {
        const std::filesystem::path where = std::filesystem::path{root_path()} / name;
        std::filesystem::create_directories(where.parent_path());
        std::ofstream{where} << text;
    }

    /// A client that has sent a request and ends its connection behind the answer.
    raw_peer request(std::string_view method = "GET", std::string_view fields = {},
                     std::string_view body = {}, std::string_view target = "/a.php") {
        return request_by(connect(), method, fields, body, target);
    }
    raw_peer request_by(raw_peer client, std::string_view method = "GET",
                        std::string_view fields = {}, std::string_view body = {},
                        std::string_view target = "/a.php") {
        std::string text = std::string{method} + ' ' + std::string{target} +
                           " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + std::string{fields};
        if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
        client.send(text + "\r\n" + std::string{body});
        return client;
    }
    /// The answer to a GET that the backend answers with `bytes`, and then ends its connection.
    std::string answer_to(std::string_view bytes, std::string_view method = "GET") {
        raw_peer client = request(method);
        {
            raw_peer backend = responder_.accept();
            EXPECT_TRUE(take_request(backend).is_complete);
            backend.send(bytes);
            ::shutdown(backend.fd(), SHUT_WR);
        }
        return everything(client);
    }
    /// Everything that comes, also before a reset.
    static std::string everything(raw_peer& client) {
        std::string all;
        for (std::string part = "x"; !part.empty(); all += part)
            part = client.receive(65536);
        return without_date(std::move(all));
    }
    /// Whether a client takes `answer` for complete.
    static bool looks_complete(std::string_view answer) {
        const std::size_t end = answer.find("\r\n\r\n");
        if (end == answer.npos) return false;
        const std::string_view head = answer.substr(0, end + 2);
        const std::string_view body = answer.substr(end + 4);
        if (head.find("Transfer-Encoding: chunked") != head.npos) {
            return body.ends_with("\r\n0\r\n\r\n") || body == "0\r\n\r\n";
        }
        const std::size_t length = head.find("Content-Length: ");
        return length == head.npos ||
               std::stoul(std::string{head.substr(length + 16)}) == body.size();
    }
    static bool has_status(std::string_view answer, unsigned status) {
        return answer.starts_with("HTTP/1.1 " + std::to_string(status) + ' ');
    }

    closed_port responder_;
    reports reports_;
    temporary_directory folder_;
};

inline constexpr std::string_view hello = "Content-Type: text/plain\r\n\r\nhello";

} // namespace simplenet::v0::testing
