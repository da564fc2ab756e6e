// What leaves for a request, and what is refused before anything leaves.

#include "scripted_server.hpp"

#include <simplenet/stream/duplex.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::testing {
namespace {

using namespace std::string_literals;

class client_request_test : public client_test {
protected:
    /// Sends a request to a server that answers, and returns what has left, the address as `HOST`.
    std::string sent(http::client_request asked, std::string_view path = "/",
                     http::client_options options = {}) {
        std::string text;
        talk(
            {{answer_with("")}},
            [&](scripted_server& server, http::client& web) -> task<> {
                const std::string url = server.url(path);
                asked.url = url;
                EXPECT_TRUE(co_await web.send(asked));
                text = server.requests.at(0);
                const std::size_t at = text.find(server.authority());
                if (at != std::string::npos) text.replace(at, server.authority().size(), "HOST");
            },
            options);
        return text;
    }
    /// Expects that a request with these fields is refused.
    void expect_refusal(const http::fields& fields) {
        talk({}, [&](scripted_server& server, http::client& web) -> task<> {
            const std::string url = server.url();
            const auto answer = co_await web.send({.url = url, .fields = &fields});
            EXPECT_EQ(error_of(answer), std::errc::invalid_argument)
                << (*fields.begin()).name << ": " << (*fields.begin()).value;
        });
    }
};

TEST_P(client_request_test, a_get_request_says_little) {
    EXPECT_EQ(sent({}, "/a/../b?c=%20#d"), "GET /b?c=%20 HTTP/1.1\r\n"
                                           "Host: HOST\r\n"
                                           "User-Agent: libsimplenet\r\n"
                                           "Accept-Encoding: gzip\r\n"
                                           "\r\n");
}

TEST_P(client_request_test, the_fields_of_the_caller_keep_their_order_and_win) {
    http::fields fields;
    fields.add("B", "2").add("a", "1").add("user-agent", "mine").add("Range", "bytes=0-1");

    EXPECT_EQ(sent({.fields = &fields}), "GET / HTTP/1.1\r\nHost: HOST\r\nB: 2\r\na: 1\r\n"
                                         "user-agent: mine\r\nRange: bytes=0-1\r\n\r\n");
}

TEST_P(client_request_test, a_host_of_the_caller_replaces_that_of_the_url) {
    http::fields fields;
    fields.add("Host", "example.org:81").add("Connection", "close");

    const std::string text = sent({.fields = &fields});

    EXPECT_TRUE(text.starts_with("GET / HTTP/1.1\r\nHost: example.org:81\r\nUser-Agent:"));
    EXPECT_TRUE(has_line(text, "Connection: close"));
}

TEST_P(client_request_test, a_body_leaves_with_its_length) {
    const std::string text = sent({.method = "POST", .body = "body"});

    EXPECT_TRUE(has_line(text, "Content-Length: 4"));
    EXPECT_TRUE(text.ends_with("\r\n\r\nbody"));
}

TEST_P(client_request_test, methods_that_have_bodies_say_that_there_is_none) {
    for (const char* const method : {"POST", "PUT", "PATCH"}) {
        EXPECT_TRUE(has_line(sent({.method = method}), "Content-Length: 0")) << method;
    }
    for (const char* const method : {"GET", "HEAD", "DELETE", "OPTIONS", "X-OTHER"}) {
        EXPECT_EQ(sent({.method = method}).find("Content-Length"), std::string::npos) << method;
    }
}

TEST_P(client_request_test, options_choose_what_the_client_says_of_itself) {
    EXPECT_EQ(sent({}, "/", {.decompress = false, .user_agent = ""}),
              "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n");
}

TEST_P(client_request_test, fields_that_would_split_the_request_are_refused) {
    for (const auto& [name, value] :
         std::initializer_list<std::pair<std::string, std::string>>{{"A", "1\r\nB: 2"},
                                                                    {"A", "1\n2"},
                                                                    {"A", "1\r2"},
                                                                    {"A", "1\0"s},
                                                                    {"A\r\nB", "1"},
                                                                    {"A: B", "1"},
                                                                    {"A ", "1"},
                                                                    {"", "1"},
                                                                    {"A\0"s, "1"}}) {
        http::fields fields;
        fields.add(name, value);
        expect_refusal(fields);
    }
}

TEST_P(client_request_test, fields_of_framing_and_connection_are_refused) {
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"content-length", "4"},
             {"Transfer-Encoding", "chunked"},
             {"Expect", "100-continue"},
             {"Upgrade", "h2c"},
             {"TE", "trailers"},
             {"Trailer", "X"},
             {"Connection", "upgrade"},
             {"Connection", "close, X"},
             {"Host", ""},
             {"Host", "a b"},
             {"Host", "user@host"}}) {
        http::fields fields;
        fields.add(name, value);
        expect_refusal(fields);
    }
}

TEST_P(client_request_test, two_hosts_are_refused) {
    http::fields fields;
    fields.add("Host", "a").add("host", "b");
    expect_refusal(fields);
}

TEST_P(client_request_test, methods_that_are_no_tokens_are_refused) {
    talk({}, [](scripted_server& server, http::client& web) -> task<> {
        const std::string url = server.url();
        for (const std::string& method :
             {""s, "GET /"s, "GET\r\n"s, "GET\0"s, "G T"s, "CONNECT"s}) {
            const auto answer = co_await web.send({.method = method, .url = url});
            EXPECT_EQ(error_of(answer), std::errc::invalid_argument) << method;
        }
    });
}

TEST_P(client_request_test, bodies_that_contradict_are_refused) {
    talk({}, [](scripted_server& server, http::client& web) -> task<> {
        const std::string url = server.url();
        auto [reader, writer] = duplex();
        const auto both = co_await web.send({.url = url, .body = "x", .stream = reader});
        EXPECT_EQ(error_of(both), std::errc::invalid_argument);
        const auto length = co_await web.send({.url = url, .body = "x", .content_length = 2});
        EXPECT_EQ(error_of(length), std::errc::invalid_argument);
    });
}

TEST_P(client_request_test, urls_of_others_are_refused) {
    run([]() -> task<> {
        http::client web;
        for (const std::string& url :
             {""s, "/path"s, "ftp://host/"s, "http://"s, "http://user:word@host/"s,
              "http://host/\r\nX: 1"s, "http://host/\n"s, "http://host/\0"s, "http://ho st/"s,
              "http://host:0/"s, "http://host:99999/"s, "http://host/a b"s, "ws://host/"s}) {
            EXPECT_EQ(error_of(co_await web.get(url)), http::errc::bad_url) << url;
        }
    });
}

TEST_P(client_request_test, the_arguments_of_a_call_may_be_gone_when_it_starts) {
    talk({{answer_with("")}}, [](scripted_server& server, http::client& web) -> task<> {
        auto url = std::make_unique<std::string>(server.url("/kept"));
        auto method = std::make_unique<std::string>("PUT");
        auto fields = std::make_unique<http::fields>();
        fields->add("A", "kept");
        auto sending = web.send({.method = *method, .url = *url, .fields = fields.get()});
        url.reset();
        method.reset();
        fields.reset();

        EXPECT_TRUE(co_await std::move(sending));
        EXPECT_TRUE(server.requests.at(0).starts_with("PUT /kept HTTP/1.1\r\n"));
        EXPECT_TRUE(has_line(server.requests.at(0), "A: kept"));
    });
}

INSTANTIATE_TEST_SUITE_P(backends, client_request_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
