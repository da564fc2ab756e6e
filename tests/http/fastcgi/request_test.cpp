// What FastCGI applications are asked, and how they are reached.

#include "responder.hpp"

#include "support/full_listener.hpp"

#include <simplenet/ip/address_set.hpp>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

class request_test : public responder_test {
protected:
    /// The request that the backend gets for a GET of `target`.
    received_request received(std::string_view target, std::string_view fields = {}) {
        raw_peer client = request("GET", fields, {}, target);
        raw_peer backend = responder_.accept();
        received_request taken = take_request(backend);
        backend.send(answer_of(hello));
        EXPECT_TRUE(has_status(everything(client), 200)) << target;
        return taken;
    }
    /// The status of an answer without the backend.
    std::string own_answer(std::string_view target) {
        raw_peer client = request("GET", {}, {}, target);
        return everything(client).substr(9, 3);
    }
};

TEST_P(request_test, variables_tell_the_request) {
    serve_scripts({.server_name = "named", .keep_connections = 0});

    const received_request got = received("/a.php?q=%20", "Host2: x\r\nAccept: a\r\naccept: b\r\n");

    EXPECT_FALSE(got.keeps);
    EXPECT_EQ(got.param("GATEWAY_INTERFACE"), "CGI/1.1");
    EXPECT_EQ(got.param("REQUEST_METHOD"), "GET");
    EXPECT_EQ(got.param("REQUEST_URI"), "/a.php?q=%20");
    EXPECT_EQ(got.param("QUERY_STRING"), "q=%20");
    EXPECT_EQ(got.param("SCRIPT_NAME"), "/a.php");
    EXPECT_EQ(got.param("SCRIPT_FILENAME"), root_path() + "/a.php");
    EXPECT_EQ(got.param("DOCUMENT_ROOT"), root_path());
    EXPECT_EQ(got.param("DOCUMENT_URI"), "/a.php");
    EXPECT_EQ(got.param("PATH_INFO"), "(none)");
    EXPECT_EQ(got.param("SERVER_NAME"), "named");
    EXPECT_EQ(got.param("SERVER_PORT"), std::to_string(server().local_endpoint().port()));
    EXPECT_EQ(got.param("REMOTE_ADDR"), "127.0.0.1");
    EXPECT_EQ(got.param("HTTPS"), "(none)");
    EXPECT_EQ(got.param("CONTENT_LENGTH"), "(none)");
    EXPECT_EQ(got.param("HTTP_ACCEPT"), "a, b");
    EXPECT_EQ(got.param("HTTP_HOST"), "h");
}

TEST_P(request_test, fields_that_could_be_taken_for_others_are_left_out) {
    serve_scripts({.keep_connections = 0});

    const received_request got = received("/a.php", "Proxy: evil\r\nX_Forwarded_For: evil\r\n"
                                                    "X.Forwarded.For: evil\r\nTE: trailers\r\n"
                                                    "Cookie: a=1\r\nCookie: b=2\r\n"
                                                    "Content-Type: x/y\r\nUpgrade: evil\r\n"
                                                    "Proxy-Connection: evil\r\n"
                                                    "Proxy-Authorization: evil\r\n"
                                                    "Proxy-Authenticate: evil\r\n"
                                                    "HTTP2-Settings: evil\r\nKeep-Alive: evil\r\n"
                                                    "Trailer: evil\r\nProxy: evil\r\n");

    for (const auto& [name, value] : got.params)
        EXPECT_EQ(value.find("evil"), std::string::npos) << name;
    EXPECT_EQ(got.param("HTTP_PROXY"), "(none)");
    EXPECT_EQ(got.param("HTTP_TE"), "(none)");
    EXPECT_EQ(got.param("HTTP_CONNECTION"), "(none)");
    EXPECT_EQ(got.param("HTTP_CONTENT_TYPE"), "(none)");
    EXPECT_EQ(got.param("CONTENT_TYPE"), "x/y");
    EXPECT_EQ(got.param("HTTP_COOKIE"), "a=1; b=2");
}

constexpr std::string_view told_of_the_client = "Forwarded: for=evil\r\nX-Forwarded-For: evil\r\n"
                                                "X-Forwarded-Proto: evil\r\nX-Real-IP: evil\r\n"
                                                "x-forwarded-anything: evil\r\n";

TEST_P(request_test, what_an_untrusted_client_says_of_itself_is_left_out) {
    serve_scripts({.keep_connections = 0});

    const received_request got = received("/a.php", std::string{told_of_the_client});

    for (const auto& [name, value] : got.params)
        EXPECT_EQ(value.find("evil"), std::string::npos) << name;
}

TEST_P(request_test, what_a_trusted_proxy_says_of_the_client_is_passed_on) {
    constexpr std::array<std::string_view, 1> proxies{"127.0.0.1"};
    const address_set trusted = or_throw(address_set::parse(proxies));
    serve_scripts({.trusted = &trusted, .keep_connections = 0});

    const received_request got = received("/a.php", std::string{told_of_the_client});

    EXPECT_EQ(got.param("HTTP_FORWARDED"), "for=evil");
    EXPECT_EQ(got.param("HTTP_X_FORWARDED_FOR"), "evil");
    EXPECT_EQ(got.param("HTTP_X_FORWARDED_PROTO"), "evil");
    EXPECT_EQ(got.param("HTTP_X_REAL_IP"), "evil");
    EXPECT_EQ(got.param("HTTP_X_FORWARDED_ANYTHING"), "evil");
}

TEST_P(request_test, a_forwarded_that_would_swallow_what_follows_is_left_out) {
    constexpr std::array<std::string_view, 1> proxies{"127.0.0.1"};
    const address_set trusted = or_throw(address_set::parse(proxies));
    serve_scripts({.trusted = &trusted, .keep_connections = 0});

    const received_request got =
        received("/a.php", "Forwarded: for=\"evil\r\nForwarded: for=192.0.2.1\r\n");

    EXPECT_EQ(got.param("HTTP_FORWARDED"), "(none)");
}

// A proxy that sets X-Forwarded-For and no X-Real-IP passes on the one of its client.
TEST_P(request_test, the_client_that_the_program_knows_is_the_only_real_one) {
    constexpr std::array<std::string_view, 1> proxies{"127.0.0.1"};
    const address_set trusted = or_throw(address_set::parse(proxies));
    const std::string address = address_of(responder_);
    const std::array backends{http::backend{address}};
    const http::fastcgi_handler php{
        {.backends = backends, .trusted = &trusted, .keep_connections = 0}};
    http::router routes;
    routes.fallback([php](http::request& asked, http::response& answer) -> task<result<>> {
        const bool is_far = asked.fields().find("X-Forwarded-For").has_value();
        const std::string_view client = is_far ? "203.0.113.9" : "127.0.0.1";
        asked.set_peer({or_throw(ip_address::parse(client)), 0});
        co_return co_await php(asked, answer);
    });
    serve(std::move(routes));

    const received_request got = received("/a.php", "X-Forwarded-For: 203.0.113.9\r\n"
                                                    "X-Real-IP: evil\r\nx-real-ip: evil\r\n");

    EXPECT_EQ(got.param("REMOTE_ADDR"), "203.0.113.9");
    EXPECT_EQ(got.param("HTTP_X_REAL_IP"), "203.0.113.9");
    // Also a client that has the address of the proxy.
    EXPECT_EQ(received("/a.php", "X-Real-IP: evil\r\n").param("HTTP_X_REAL_IP"), "127.0.0.1");
}

TEST_P(request_test, variables_of_the_options_win) {
    const std::vector<http::field> params{{"HTTPS", "on"}, {"HTTP_ACCEPT", "mine"}, {"LONG", "x"}};
    serve_scripts({.params = params, .keep_connections = 0});

    const received_request got = received("/a.php", "Accept: theirs\r\n");

    EXPECT_EQ(got.param("HTTPS"), "on");
    EXPECT_EQ(got.param("HTTP_ACCEPT"), "mine");
}

TEST_P(request_test, variables_beyond_one_record_arrive_whole) {
    const std::string large(150'000, 'v');
    const std::vector<http::field> params{{"LARGE", large}, {"AFTER", "it"}};
    serve_scripts({.params = params, .keep_connections = 0});

    const received_request got = received("/a.php");

    EXPECT_EQ(got.param("LARGE"), large);
    EXPECT_EQ(got.param("AFTER"), "it");
    EXPECT_EQ(got.param("REQUEST_METHOD"), "GET");
}

TEST_P(request_test, the_script_is_the_shortest_file_that_ends_in_php) {
    write("dir.php/b.php", "");
    write("image.jpg", "");
    serve_scripts({.path_info = true, .keep_connections = 0});

    const received_request deeper = received("/dir.php/b.php/more.php");
    EXPECT_EQ(deeper.param("SCRIPT_NAME"), "/dir.php/b.php");
    EXPECT_EQ(deeper.param("PATH_INFO"), "/more.php");
    EXPECT_EQ(deeper.param("PATH_TRANSLATED"), root_path() + "/more.php");
    EXPECT_EQ(received("/x/..//a.php/%41").param("PATH_INFO"), "/A");
    for (const std::string_view none :
         {"/image.jpg", "/image.jpg/a.php", "/image.jpg/x.php", "/b.php", "/dir.php", "/a.php%2Fb",
          "/a.phpx", "/A.PHP", "/", "/dir.php/", "/a.php%252Fx"}) {
        EXPECT_EQ(own_answer(none), "404") << none;
    }
}

// The index stood behind what was asked for.
TEST_P(request_test, a_path_behind_the_script_may_end_in_a_slash) {
    write("folder/index.php", "");
    serve_scripts({.path_info = true, .keep_connections = 0});

    EXPECT_EQ(received("/a.php/").param("PATH_INFO"), "/");
    const received_request deeper = received("/a.php/%41/b/");
    EXPECT_EQ(deeper.param("SCRIPT_NAME"), "/a.php");
    EXPECT_EQ(deeper.param("PATH_INFO"), "/A/b/");
    const received_request index = received("/folder/");
    EXPECT_EQ(index.param("SCRIPT_NAME"), "/folder/index.php");
    EXPECT_EQ(index.param("PATH_INFO"), "(none)");
}

TEST_P(request_test, a_path_behind_the_script_is_404_by_default) {
    serve_scripts();

    EXPECT_EQ(own_answer("/a.php/more"), "404");
    EXPECT_EQ(own_answer("/a.php/"), "404");
}

TEST_P(request_test, links_out_of_the_root_lead_nowhere) {
    std::filesystem::create_directory(folder_ / "outside");
    std::ofstream{folder_ / "outside/o.php"} << "";
    const std::filesystem::path root{root_path()};
    std::filesystem::create_symlink("../outside/o.php", root / "out.php");
    std::filesystem::create_symlink(folder_ / "outside/o.php", root / "absolute.php");
    std::filesystem::create_directory_symlink("../outside", root / "out");
    std::filesystem::create_symlink("a.php", root / "in.php");
    serve_scripts({.keep_connections = 0});

    EXPECT_EQ(own_answer("/out.php"), "404");
    EXPECT_EQ(own_answer("/absolute.php"), "404");
    EXPECT_EQ(own_answer("/out/o.php"), "404");
    EXPECT_EQ(received("/in.php").param("SCRIPT_NAME"), "/in.php");
    end_loops();
    serve_scripts({.follow = http::symlinks::never});
    EXPECT_EQ(own_answer("/in.php"), "404");
}

TEST_P(request_test, a_script_that_is_gone_is_404_after_a_second_at_most) {
    serve_scripts({.keep_connections = 0, .connect = 50ms, .head_within = 5ms}); // nobody answers
    EXPECT_EQ(own_answer("/a.php"), "504");

    std::filesystem::remove(std::filesystem::path{root_path()} / "a.php");

    EXPECT_TRUE(eventually([&] { return own_answer("/a.php") == "404"; }));
}

TEST_P(request_test, a_root_that_is_elsewhere_cannot_be_checked) {
    serve_scripts({.script_root = "/nowhere/www", .keep_connections = 0});

    const received_request got = received("/any/thing.php");

    EXPECT_EQ(got.param("SCRIPT_FILENAME"), "/nowhere/www/any/thing.php");
    EXPECT_EQ(got.param("DOCUMENT_ROOT"), "/nowhere/www");
    EXPECT_EQ(own_answer("/any/thing"), "404");
    end_loops();
    const std::string here = root_path();
    serve_scripts({.script_root = here});
    EXPECT_EQ(own_answer("/any/thing.php"), "404");
}

TEST_P(request_test, a_root_keeps_its_symbolic_links_but_for_those_before_a_parent) {
    const std::filesystem::path root = root_path();
    std::filesystem::create_directories(root / "releases/1/www");
    std::filesystem::create_directory_symlink("releases/1", root / "current");
    std::ofstream{root / "releases/1/www/b.php"};
    for (const auto& [given, told] : {std::pair{"/current/www", "/current/www"},
                                      std::pair{"/current/../../current/www", "/current/www"},
                                      std::pair{"/current/../1/www/", "/releases/1/www"}}) {
        const std::string address = address_of(responder_);
        const std::array backends{http::backend{address}};
        const std::string directory = root_path() + given;
        http::router routes;
        routes.fastcgi("/", {.backends = backends, .root = directory, .keep_connections = 0});
        serve(std::move(routes));

        EXPECT_EQ(received("/b.php").param("SCRIPT_FILENAME"), root_path() + told + "/b.php");
        end_loops();
    }
}

TEST_P(request_test, an_application_without_files_gets_the_whole_path) {
    const std::string address = address_of(responder_);
    const std::array backends{http::backend{address}};
    http::router routes;
    routes.fastcgi("/app/", {.backends = backends, .keep_connections = 0});
    serve(std::move(routes));

    const received_request got = received("/app/x%20y/z");

    EXPECT_EQ(got.param("SCRIPT_NAME"), "/app");
    EXPECT_EQ(got.param("PATH_INFO"), "/x y/z");
    EXPECT_EQ(got.param("SCRIPT_FILENAME"), "(none)");
    EXPECT_EQ(received("/app").param("PATH_INFO"), "(none)");
}

TEST_P(request_test, a_target_that_is_a_url_is_told_as_a_path) {
    serve_scripts({.keep_connections = 0});

    EXPECT_EQ(received("http://h/a.php?q=/").param("REQUEST_URI"), "/a.php?q=/");
    EXPECT_EQ(received("/a.php?at=http://h/").param("REQUEST_URI"), "/a.php?at=http://h/");
}

TEST_P(request_test, a_program_in_front_rewrites_the_path) {
    const std::string address = address_of(responder_);
    const std::array backends{http::backend{address}};
    const std::string root = root_path();
    const http::fastcgi_handler php{{.backends = backends, .root = root, .keep_connections = 0}};
    http::router routes;
    routes.get("/{path...}", [php](http::request& asked, http::response& answer) -> task<result<>> {
        const result<unsigned> status = co_await php.attempt(asked, answer);
        EXPECT_EQ(status, 404U);
        asked.rewrite("/a.php");
        asked.set_user("me");
        answer.set("Content-Type", "text/mine");
        co_return co_await php(asked, answer);
    });
    serve(std::move(routes));
    raw_peer client = request("GET", {}, {}, "/pretty/name?q");
    raw_peer backend = responder_.accept();

    const received_request got = take_request(backend);
    backend.send(answer_of(hello));

    EXPECT_EQ(got.param("SCRIPT_NAME"), "/a.php");
    EXPECT_EQ(got.param("REQUEST_URI"), "/pretty/name?q");
    EXPECT_EQ(got.param("REMOTE_USER"), "me");
    EXPECT_NE(everything(client).find("Content-Type: text/mine\r\n"), std::string::npos);
}

TEST_P(request_test, bodies_of_all_sizes_arrive) {
    for (const bool streamed : {false, true}) {
        serve_scripts({.streamed = streamed, .keep_connections = 0});
        for (const std::size_t size : {1, 16384, 16385, 65536, 65537, 300000}) {
            const std::string body(size, 'b');
            raw_peer client = request("POST", {}, body);
            raw_peer backend = responder_.accept();

            const received_request got = take_request(backend);
            backend.send(answer_of(hello));

            EXPECT_EQ(got.param("CONTENT_LENGTH"), std::to_string(size));
            EXPECT_EQ(got.body, body);
            EXPECT_TRUE(has_status(everything(client), 200));
        }
        end_loops();
    }
}

TEST_P(request_test, slow_uploads_occupy_no_backend) {
    serve_scripts({.connections = 2});
    std::vector<raw_peer> uploads;
    for (int each = 0; each < 5; ++each) {
        uploads.push_back(connect());
        uploads.back().send("POST /a.php HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nslow");
    }

    EXPECT_EQ(received("/a.php").param("REQUEST_METHOD"), "GET");

    uploads.clear();
}

TEST_P(request_test, a_streamed_body_leaves_while_it_arrives) {
    serve_scripts({.streamed = true});
    raw_peer client = connect();
    client.send("POST /a.php HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                "Content-Length: 9\r\n\r\nhalf");
    raw_peer backend = responder_.accept();
    static_cast<void>(take_params(backend));

    EXPECT_EQ(take_record(backend).content, "half");
    client.send("other");
    EXPECT_EQ(take_record(backend).content, "other");
    EXPECT_EQ(take_record(backend).content, "");
    backend.send(answer_of(hello));

    EXPECT_TRUE(everything(client).ends_with("hello"));
}

TEST_P(request_test, a_backend_may_answer_before_it_has_read_the_body) {
    serve_scripts({.streamed = true});
    raw_peer client = connect();
    client.send("POST /a.php HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
    raw_peer backend = responder_.accept();
    static_cast<void>(take_params(backend));

    backend.send(answer_of("Status: 403\n\nno"));

    EXPECT_TRUE(receive_until(client, "\r\n\r\nno").starts_with("HTTP/1.1 403"));
    // What it has not read of the request would be the beginning of the next one.
    EXPECT_EQ(take_record(backend).content, "half");
    EXPECT_EQ(take_record(backend).type, 0U);
}

TEST_P(request_test, a_client_that_ends_in_its_body_is_no_request) {
    for (const bool streamed : {false, true}) {
        serve_scripts({.streamed = streamed});
        raw_peer client = connect();
        client.send("POST /a.php HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
        if (streamed) {
            raw_peer backend = responder_.accept();
            client.close();
            EXPECT_FALSE(take_request(backend).is_complete);
        } else {
            client.shutdown_write();
            EXPECT_EQ(everything(client), "");
        }
        end_loops();
    }
}

TEST_P(request_test, a_body_beyond_the_limit_is_413_and_one_that_cannot_be_stored_500) {
    const std::string address = address_of(responder_);
    const std::array backends{http::backend{address}};
    const std::string root = root_path();
    const std::string nowhere = folder_ / "missing";
    http::router routes;
    routes.fastcgi("/", {.backends = backends, .root = root, .temporary_directory = nowhere});
    http::server_options with;
    with.limits.body = 200'000;
    serve(std::move(routes), with);

    raw_peer client = connect();
    client.send("POST /a.php HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n30d41\r\n");
    EXPECT_TRUE(receive_head(client).starts_with("HTTP/1.1 413"));
    raw_peer other = request("POST", {}, std::string(200'000, 'x'));
    EXPECT_TRUE(receive_head(other).starts_with("HTTP/1.1 500"));
}

INSTANTIATE_TEST_SUITE_P(backends, request_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
