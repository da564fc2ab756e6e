#pragma once
// A web server without HTTP: it makes the system calls that a request needs, with bytes that never
// change, and looks at nothing. What a real server costs beyond this is its own.
//
//   --port N        as for the other servers
//   --body BYTES    of each answer
//   --upstream PORT asks that server for /proxied/file, and answers when it has
//   --php SOCKET    asks PHP-FPM there for --script FILE, and answers when it has
//
// Each read is one request, or one answer: both have fewer bytes than the buffer here.

#include "arguments.hpp"
#include "fixed_answer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace bench {

class bare_web {
public:
    static constexpr std::size_t buffer = 16'384;

    explicit bare_web(arguments& given)
        : port_{static_cast<std::uint16_t>(given.number("port", 0))}
        , answer_{answer_with(given.number("body", 14))}
        , php_{given.text("php", {})} {
        const unsigned long upstream = given.number("upstream", 0);
        const std::string_view script = given.text("script", {});
        given.done();
        if (upstream != 0) {
            in_.sin_family = AF_INET;
            in_.sin_port = htons(static_cast<std::uint16_t>(upstream));
            in_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            question_ = "GET /proxied/file HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                        "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n\r\n";
        } else if (!php_.empty()) {
            un_.sun_family = AF_UNIX;
            if (php_.size() >= sizeof un_.sun_path) fail("--php", ENAMETOOLONG);
            php_.copy(un_.sun_path, php_.size());
            question_ = fastcgi_request(script);
        }
    }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// `watch(fd)` is called for new connections to the other server.
    template <class Watch>
    void received(int fd, std::string_view bytes, Watch watch) {
        if (question_.empty()) return send_all(fd, answer_);
        if (!is_backend(fd)) return ask_for(fd, watch);
        // PHP-FPM writes its answer and the end of the request together, or one after the other.
        if (!php_.empty() && !is_end_of_request(bytes)) return;
        if (const int client = client_of_[static_cast<std::size_t>(fd)]; client != nobody)
            send_all(client, answer_);
        if (waiting_.empty()) {
            idle_.push_back(fd);
        } else {
            ask(fd, waiting_.front());
            waiting_.pop_front();
        }
    }
    /// The other side has ended the connection, which may be closed now.
    void ended(int fd) {
        if (is_backend(fd)) fail("the other server ended a connection", ECONNRESET);
        std::ranges::replace(client_of_, fd, nobody);
        std::erase(waiting_, fd);
    }

private:
    static constexpr std::size_t most_to_php = 4; // its processes: each serves one connection
    static constexpr int no_backend = -1;
    static constexpr int nobody = -2; // the client has left

    [[noreturn]] static void fail(const char* what, int why) {
        std::fprintf(stderr, "%s: %s\n", what, std::strerror(why));
        std::exit(1);
    }

    static std::string record(char type, const std::string& content) {
        const auto high = static_cast<char>(content.size() >> 8U);
        const auto low = static_cast<char>(content.size() & 0xffU);
        return std::string{'\1', type, '\0', '\1', high, low, '\0', '\0'} + content;
    }
    static std::string fastcgi_request(std::string_view script) {
        const std::pair<std::string_view, std::string_view> params[]{
            {"QUERY_STRING", ""},           {"REQUEST_METHOD", "GET"},
            {"SCRIPT_NAME", "/hello.php"},  {"REQUEST_URI", "/hello.php"},
            {"DOCUMENT_URI", "/hello.php"}, {"SERVER_PROTOCOL", "HTTP/1.1"},
            {"REQUEST_SCHEME", "http"},     {"GATEWAY_INTERFACE", "CGI/1.1"},
            {"SERVER_SOFTWARE", "bare"},    {"REMOTE_ADDR", "127.0.0.1"},
            {"REMOTE_PORT", "50000"},       {"SERVER_ADDR", "127.0.0.1"},
            {"SERVER_PORT", "8080"},        {"SERVER_NAME", ""},
            {"REDIRECT_STATUS", "200"},     {"HTTP_HOST", "127.0.0.1:8080"},
            {"SCRIPT_FILENAME", script},
        };
        std::string all;
        for (const auto& [name, value] : params) {
            if (value.size() > 127) fail("--script", ENAMETOOLONG);
            all += static_cast<char>(name.size());
            all += static_cast<char>(value.size());
            all += name;
            all += value;
        }
        // FCGI_BEGIN_REQUEST as a responder that keeps the connection.
        return record(1, std::string{'\0', '\1', '\1', '\0', '\0', '\0', '\0', '\0'}) +
               record(4, all) + record(4, {}) + record(5, {});
    }
    /// FCGI_END_REQUEST is a record of 16 bytes.
    static bool is_end_of_request(std::string_view bytes) {
        return bytes.size() >= 16 && bytes[bytes.size() - 16] == 1 && bytes[bytes.size() - 15] == 3;
    }

    [[nodiscard]] bool is_backend(int fd) const {
        return static_cast<std::size_t>(fd) < client_of_.size() &&
               client_of_[static_cast<std::size_t>(fd)] != no_backend;
    }

    template <class Watch>
    void ask_for(int client, Watch watch) {
        if (!idle_.empty()) {
            const int fd = idle_.back();
            idle_.pop_back();
            return ask(fd, client);
        }
        if (!php_.empty() && made_ == most_to_php) {
            waiting_.push_back(client);
            return;
        }
        const int fd = connect();
        if (client_of_.size() <= static_cast<std::size_t>(fd))
            client_of_.resize(static_cast<std::size_t>(fd) + 1, no_backend);
        ask(fd, client);
        watch(fd);
    }
    int connect() {
        const bool is_local = !php_.empty();
        const auto* const to = is_local ? reinterpret_cast<const sockaddr*>(&un_)
                                        : reinterpret_cast<const sockaddr*>(&in_);
        const socklen_t size = is_local ? sizeof un_ : sizeof in_;
        const int fd = ::socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || ::connect(fd, to, size) != 0) fail("connect", errno);
        const int on = 1;
        if (!is_local) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        ++made_;
        return fd;
    }
    void ask(int fd, int client) {
        client_of_[static_cast<std::size_t>(fd)] = client;
        send_all(fd, question_);
    }
    /// What is sent has room in any socket whose reader has taken what came before.
    static void send_all(int fd, const std::string& bytes) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        const bool has_left = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
        if (has_left || static_cast<std::size_t>(sent) == bytes.size()) return;
        fail("send", sent < 0 ? errno : ENOBUFS);
    }

    std::uint16_t port_;
    std::string answer_;
    std::string question_;
    std::string_view php_;
    sockaddr_in in_{};
    sockaddr_un un_{};
    std::size_t made_ = 0;
    std::vector<int> client_of_; // by descriptor
    std::vector<int> idle_;
    std::deque<int> waiting_;
};

} // namespace bench
