// The gateway in front of PHP-FPM.

#include "http/server/http_test.hpp"
#include "php_fpm.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_literals;

constexpr std::string_view tell_server = R"(<?php
header('Content-Type: text/plain');
ksort($_SERVER);
foreach ($_SERVER as $name => $value) if (is_string($value)) echo "$name=$value\n";
)";

/// Collects what a gateway reports.
class reports {
public:
    static void take(const http::gateway_report& report, void* context) {
        auto& self = *static_cast<reports*>(context);
        const std::lock_guard locked{self.mutex_};
        self.lines_.emplace_back(report.text);
    }
    bool has(std::string_view text) {
        const std::lock_guard locked{mutex_};
        for (const std::string& each : lines_)
            if (each.find(text) != std::string::npos) return true;
        return false;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

class php_test : public http_test {
protected:
    static void SetUpTestSuite() {
        if (const auto program = find_php_fpm()) fpm_ = std::make_unique<php_fpm>(*program);
    }
    static void TearDownTestSuite() { fpm_.reset(); }
    void SetUp() override {
        if (!fpm_) {
            const char* const required = std::getenv("SIMPLENET_REQUIRE_PHP");
            ASSERT_TRUE(required == nullptr || *required != '1') << "php-fpm is not installed";
            GTEST_SKIP() << "php-fpm is not installed (Debian: php-fpm)";
        }
        http_test::SetUp();
    }

    /// Serves the scripts by the Unix socket.
    void serve_php(http::fastcgi_options options = {}) {
        const std::string address = fpm_->local_address();
        serve_at(address, options);
    }
    void serve_at(const std::string& address, http::fastcgi_options options = {}) {
        const std::array backends{http::backend{address}};
        const std::string root = fpm_->root();
        options.backends = backends;
        options.root = root;
        options.server_name = "test.example";
        options.report = &reports::take;
        options.report_context = &reports_;
        http::router routes;
        routes.fastcgi("/", options);
        serve(std::move(routes), {.limits = {.body = 0}});
    }
    std::string get(std::string_view path, std::string_view fields = {}) {
        return ask("GET " + std::string{path} + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" +
                   std::string{fields} + "\r\n");
    }

    static inline std::unique_ptr<php_fpm> fpm_;
    reports reports_;
};

bool has_line(std::string_view text, std::string_view line) {
    return text.find("\n" + std::string{line} + "\n") != std::string_view::npos;
}

TEST_P(php_test, scripts_answer_over_unix_sockets_and_tcp) {
    fpm_->write("hello.php", "<?php echo 'hello ', $_GET['who'];");
    for (const std::string& address : {fpm_->local_address(), fpm_->tcp_address()}) {
        serve_at(address);

        const std::string answer = get("/hello.php?who=you");

        EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
        EXPECT_TRUE(answer.ends_with("\r\n\r\nhello you")) << answer;
        EXPECT_NE(answer.find("Content-Length: 9\r\n"), std::string::npos) << answer;
        end_loops();
    }
}

TEST_P(php_test, a_root_may_be_relative_and_go_through_a_parent) {
    fpm_->write("sub/one.php", "<?php echo $_SERVER['SCRIPT_FILENAME'];");
    const std::filesystem::path root = fpm_->root();
    const std::string near = std::filesystem::relative(root);
    for (const std::string& each : {fpm_->root() + "/sub/..", near, near + "/sub/../"}) {
        const std::string address = fpm_->local_address();
        const std::array backends{http::backend{address}};
        http::router routes;
        routes.fastcgi("/", {.backends = backends, .root = each});
        serve(std::move(routes));

        const std::string answer = get("/sub/one.php");

        EXPECT_TRUE(answer.ends_with("\r\n\r\n" + fpm_->root() + "/sub/one.php")) << answer;
        end_loops();
    }
}

TEST_P(php_test, php_sees_the_variables_that_it_needs) {
    fpm_->write("a dir/vars.php", tell_server);
    serve_php();

    const std::string answer = get("/a%20dir//vars.php?x=%20y", "X-One: 1\r\nProxy: evil\r\n"
                                                                "x-one: 2\r\nX_Two: evil\r\n"
                                                                "Cookie: a=1\r\nCookie: b=2\r\n"
                                                                "X.Three: evil\r\n"
                                                                "Authorization: Basic eDp5\r\n");

    for (const std::string& line :
         {"REQUEST_METHOD=GET"s, "REQUEST_URI=/a%20dir//vars.php?x=%20y"s, "QUERY_STRING=x=%20y"s,
          "SCRIPT_NAME=/a dir/vars.php"s, "DOCUMENT_ROOT=" + fpm_->root(),
          "SCRIPT_FILENAME=" + fpm_->root() + "/a dir/vars.php", "PHP_SELF=/a dir/vars.php"s,
          "SERVER_NAME=test.example"s, "SERVER_PROTOCOL=HTTP/1.1"s, "GATEWAY_INTERFACE=CGI/1.1"s,
          "REDIRECT_STATUS=200"s, "REMOTE_ADDR=127.0.0.1"s, "HTTP_HOST=h"s, "HTTP_X_ONE=1, 2"s,
          "HTTP_COOKIE=a=1; b=2"s, "HTTP_AUTHORIZATION=Basic eDp5"s, "PHP_AUTH_USER=x"s}) {
        EXPECT_TRUE(has_line(answer, line)) << line << "\n" << answer;
    }
    EXPECT_EQ(answer.find("evil"), std::string::npos) << answer;
}

TEST_P(php_test, bodies_of_any_size_arrive) {
    fpm_->write("body.php", "<?php $all = file_get_contents('php://input');"
                            "echo strlen($all), ' ', md5($all), ' ', $_SERVER['CONTENT_LENGTH'];");
    for (const bool streamed : {false, true}) {
        serve_php({.streamed = streamed});
        for (const auto& [size, sum] : {std::pair{5, "594f803b380a41396ed63dca39503542"s},
                                        std::pair{300'000, "92712d77c46f3ee77d7ac6caba4fe2ba"s}}) {
            const std::string body(static_cast<std::size_t>(size), 'a');
            const std::string text = std::to_string(size);

            const std::string answer =
                ask("POST /body.php HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: " +
                    text + "\r\n\r\n" + body);

            EXPECT_TRUE(answer.ends_with("\r\n\r\n" + text + " " + sum + " " + text)) << answer;
        }
        end_loops();
    }
}

TEST_P(php_test, a_chunked_body_gets_a_length) {
    fpm_->write("length.php", "<?php echo $_SERVER['CONTENT_LENGTH'],"
                              "file_get_contents('php://input');");
    serve_php({.streamed = true});

    EXPECT_TRUE(ask("POST /length.php HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
                    .ends_with("\r\n\r\n5abcde"));
}

TEST_P(php_test, large_answers_arrive_whole) {
    fpm_->write("large.php", "<?php for ($i = 0; $i < 50000; ++$i) printf('%08d ', $i);");
    serve_php();

    const std::string answer = get("/large.php");

    EXPECT_NE(answer.find("00049999 "), std::string::npos);
    EXPECT_TRUE(answer.ends_with("\r\n0\r\n\r\n"));
}

TEST_P(php_test, statuses_redirects_and_several_cookies_are_passed_on) {
    fpm_->write("missing.php", "<?php http_response_code(404); setcookie('a', '1');"
                               "setcookie('b', '2'); echo 'gone';");
    fpm_->write("move.php", "<?php header('Location: /elsewhere');");
    fpm_->write("nothing.php", "<?php http_response_code(204);");
    serve_php();

    const std::string missing = get("/missing.php");

    EXPECT_TRUE(missing.starts_with("HTTP/1.1 404 Not Found\r\n")) << missing;
    EXPECT_NE(missing.find("Set-Cookie: a=1\r\n"), std::string::npos) << missing;
    EXPECT_NE(missing.find("Set-Cookie: b=2\r\n"), std::string::npos) << missing;
    const std::string moved = get("/move.php");
    EXPECT_TRUE(moved.starts_with("HTTP/1.1 302 Found\r\n")) << moved;
    EXPECT_NE(moved.find("Location: /elsewhere\r\n"), std::string::npos) << moved;
    EXPECT_TRUE(get("/nothing.php").starts_with("HTTP/1.1 204 No Content\r\n"));
}

TEST_P(php_test, an_answer_to_head_has_no_body) {
    fpm_->write("head.php", "<?php header('Content-Length: 5'); echo 'hello';");
    serve_php();

    const std::string answer =
        ask("HEAD /head.php HTTP/1.1\r\nHost: h\r\n\r\n"
            "GET /head.php HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");

    EXPECT_EQ(answer.find("Content-Length: 5\r\n"), answer.find("Content-Length:")) << answer;
    EXPECT_NE(answer.find("\r\n\r\nHTTP/1.1 200 OK\r\n"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("hello")) << answer;
}

TEST_P(php_test, messages_are_reported) {
    fpm_->write("warn.php", "<?php error_log('a message for people'); echo 'ok';");
    serve_php();

    EXPECT_TRUE(get("/warn.php").ends_with("ok"));

    EXPECT_TRUE(reports_.has("a message for people"));
}

TEST_P(php_test, what_is_no_script_is_neither_run_nor_served) {
    fpm_->write("secret.php", "<?php echo 'ran', $_SERVER['PATH_INFO'] ?? ''; // source");
    fpm_->write("evil.jpg", "<?php echo 'ran';");
    serve_php();

    for (const std::string_view path :
         {"/evil.jpg", "/evil.jpg/x.php", "/evil.jpg%2Fx.php", "/missing.php", "/secret.php/more",
          "/secret.php%2fmore", "/secret.phps", "/secret.PHP", "/.php", "/"}) {
        const std::string answer = get(path);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 Not Found\r\n")) << path << answer;
        EXPECT_EQ(answer.find("source"), std::string::npos) << path;
    }
}

TEST_P(php_test, path_info_is_passed_where_it_is_allowed) {
    fpm_->write("info.php", "<?php echo $_SERVER['PATH_INFO'], ' ', $_SERVER['SCRIPT_NAME'];");
    serve_php({.path_info = true});

    EXPECT_TRUE(get("/info.php/a%20b/c").ends_with("/a b/c /info.php"));
}

TEST_P(php_test, the_index_answers_for_its_directory) {
    fpm_->write("folder/index.php", "<?php echo 'index of ', $_SERVER['SCRIPT_NAME'];");
    serve_php();

    EXPECT_TRUE(get("/folder/").ends_with("index of /folder/index.php"));
}

TEST_P(php_test, workers_that_were_replaced_cost_no_request) {
    fpm_->write("again.php", "<?php echo 'again';");
    serve_php();
    raw_peer client = connect();
    const std::string_view request = "GET /again.php HTTP/1.1\r\nHost: h\r\n\r\n";
    for (int each = 0; each < 3; ++each) {
        client.send(request);
        EXPECT_TRUE(receive_until(client, "again").starts_with("HTTP/1.1 200 OK"));
        fpm_->restart_workers();
    }
}

TEST_P(php_test, more_requests_than_workers_wait) {
    fpm_->write("wait.php", "<?php usleep(1000); echo 'done';");
    serve_php({.keep_connections = 2, .connections = 2});
    std::vector<raw_peer> clients;

    for (int each = 0; each < 20; ++each) {
        clients.push_back(connect());
        clients.back().send("GET /wait.php HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    }

    for (raw_peer& each : clients)
        EXPECT_TRUE(rest_of(each).ends_with("done"));
}

INSTANTIATE_TEST_SUITE_P(backends, php_test, real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
