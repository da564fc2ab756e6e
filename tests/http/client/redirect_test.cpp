// Where redirects lead, and what goes along.

#include "scripted_server.hpp"

#include "http/client/owned_request.hpp"

#include <simplenet/stream/duplex.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::testing {
namespace {

using http::detail::owned_request;

// --- the rules, without a server -----------------------------------------------------------------

owned_request request_of(http::client_request asked) {
    return or_throw(http::detail::take_request(asked, true));
}
http::fields location(std::string_view where) {
    http::fields fields;
    fields.add("Location", where);
    return fields;
}

TEST(client_redirect_test, the_status_decides_about_method_and_body) {
    struct rule {
        unsigned status;
        const char* method;
        const char* becomes;
    };
    for (const rule& each :
         {rule{301, "GET", "GET"}, rule{301, "POST", "GET"}, rule{301, "PUT", "PUT"},
          rule{302, "POST", "GET"}, rule{302, "DELETE", "DELETE"}, rule{303, "POST", "GET"},
          rule{303, "PUT", "GET"}, rule{303, "HEAD", "HEAD"}, rule{307, "POST", "POST"},
          rule{308, "POST", "POST"}, rule{308, "HEAD", "HEAD"}}) {
        owned_request asked = request_of({.method = each.method, .url = "http://a/", .body = "b"});
        EXPECT_TRUE(or_throw(redirect(asked, each.status, location("/x"))));
        EXPECT_EQ(asked.method, each.becomes) << each.status << ' ' << each.method;
        EXPECT_EQ(asked.body.empty(), asked.method == "GET" && each.method != asked.method);
    }
}

TEST(client_redirect_test, other_answers_redirect_nowhere) {
    for (const unsigned status : {200U, 201U, 300U, 304U, 305U, 306U, 309U, 404U}) {
        owned_request asked = request_of({.url = "http://a/"});
        EXPECT_FALSE(or_throw(redirect(asked, status, location("/x")))) << status;
    }
    owned_request asked = request_of({.url = "http://a/"});
    EXPECT_FALSE(or_throw(redirect(asked, 302, {})));
}

TEST(client_redirect_test, a_location_is_resolved_and_loses_its_fragment) {
    struct rule {
        const char* where;
        const char* leads_to;
    };
    for (const rule& each :
         {rule{"/x", "http://a/x"}, rule{"x?q", "http://a/b/x?q"}, rule{"../x#f", "http://a/x"},
          rule{"//c/x", "http://c/x"}, rule{"https://c:444", "https://c:444/"},
          rule{"?q", "http://a/b/c?q"}}) {
        owned_request asked = request_of({.url = "http://a/b/c"});
        EXPECT_TRUE(or_throw(redirect(asked, 302, location(each.where))));
        EXPECT_EQ(text_of(asked.to), each.leads_to);
    }
}

TEST(client_redirect_test, secrets_stay_with_their_origin) {
    for (const char* const where : {"http://b/", "http://a:81/", "https://a/"}) {
        http::fields fields;
        fields.add("Authorization", "1").add("COOKIE", "2").add("cookie", "3");
        fields.add("Proxy-Authorization", "4").add("Host", "c").add("Accept", "5");
        owned_request asked = request_of({.url = "http://a/", .fields = &fields});

        EXPECT_TRUE(or_throw(redirect(asked, 307, location(where))));

        EXPECT_EQ(asked.fields.count(), 1U) << where;
        EXPECT_TRUE(asked.host.empty());
    }
}

TEST(client_redirect_test, secrets_go_along_within_an_origin) {
    http::fields fields;
    fields.add("Authorization", "1").add("Cookie", "2").add("Host", "c");
    owned_request asked = request_of({.url = "http://a/", .fields = &fields});

    EXPECT_TRUE(or_throw(redirect(asked, 302, location("http://A:80/x"))));

    EXPECT_EQ(asked.fields.count(), 2U);
    EXPECT_EQ(asked.host, "c");
}

TEST(client_redirect_test, fields_of_a_body_are_dropped_with_it) {
    http::fields fields;
    fields.add("Content-Type", "1").add("Content-Encoding", "2").add("Accept", "3");
    owned_request asked =
        request_of({.method = "POST", .url = "http://a/", .fields = &fields, .body = "b"});

    EXPECT_TRUE(or_throw(redirect(asked, 303, location("/x"))));

    EXPECT_EQ(asked.fields.count(), 1U);
}

TEST(client_redirect_test, a_stream_cannot_be_sent_again) {
    auto [reader, writer] = duplex();
    for (const unsigned status : {302U, 307U, 308U}) {
        owned_request asked = request_of({.method = "PUT", .url = "http://a/", .stream = reader});
        EXPECT_FALSE(or_throw(redirect(asked, status, location("/x")))) << status;
    }
    owned_request asked = request_of({.method = "POST", .url = "http://a/", .stream = reader});
    EXPECT_TRUE(or_throw(redirect(asked, 303, location("/x"))));
    EXPECT_FALSE(asked.has_stream());
}

TEST(client_redirect_test, bad_redirects_are_errors) {
    owned_request secure = request_of({.url = "https://a/"});
    EXPECT_EQ(error_of(redirect(secure, 302, location("http://a/"))),
              std::errc::operation_not_permitted);
    owned_request plain = request_of({.url = "http://a/"});
    for (const char* const where : {"ftp://a/", "http://u@a/", "http://a:0/", "http://a/ b"}) {
        EXPECT_EQ(error_of(redirect(plain, 302, location(where))), http::errc::bad_url) << where;
    }
    http::fields two = location("/x");
    two.add("location", "/y");
    EXPECT_EQ(error_of(redirect(plain, 302, two)), http::errc::bad_response);
}

// --- with a server -------------------------------------------------------------------------------

class client_redirects_test : public client_test {};

TEST_P(client_redirects_test, redirects_are_answers_unless_they_are_asked_for) {
    talk({{redirect_to("/other")}}, [](scripted_server& server, http::client& web) -> task<> {
        auto answer = or_throw(co_await web.get(server.url()));
        EXPECT_EQ(answer.status(), 302U);
        EXPECT_EQ(answer.fields().find("Location"), "/other");
    });
}

TEST_P(client_redirects_test, a_redirect_is_followed_on_the_same_connection) {
    talk({{"HTTP/1.1 301 Moved\r\nLocation: b\r\nContent-Length: 4\r\n\r\nbody",
           answer_with("there")}},
         [](scripted_server& server, http::client& web) -> task<> {
             auto answer = or_throw(co_await web.get(server.url("/a")));
             EXPECT_EQ(answer.url(), server.url("/b"));
             EXPECT_EQ(or_throw(co_await answer.read_all(10)), "there");
             EXPECT_EQ(server.accepted_count, 1);
         },
         {.redirects = 1});
}

TEST_P(client_redirects_test, a_large_body_of_a_redirect_is_not_read) {
    talk({{"HTTP/1.1 301 Moved\r\nLocation: b\r\nContent-Length: 100000000\r\n\r\nbody"},
          {answer_with("there")}},
         [](scripted_server& server, http::client& web) -> task<> {
             EXPECT_EQ(co_await body_of_get(web, server.url("/a")), "there");
             EXPECT_EQ(server.accepted_count, 2);
         },
         {.redirects = 1});
}

TEST_P(client_redirects_test, more_redirects_than_allowed_are_an_error) {
    talk({{redirect_to("/b"), redirect_to("/c"), redirect_to("/d")}},
         [](scripted_server& server, http::client& web) -> task<> {
             EXPECT_EQ(co_await error_of_get(web, server.url("/a")),
                       http::errc::too_many_redirects);
             EXPECT_EQ(server.requests.size(), 3U);
         },
         {.redirects = 2});
}

TEST_P(client_redirects_test, a_circle_is_an_error_at_once) {
    talk({{redirect_to("/b"), redirect_to("/a#again")}},
         [](scripted_server& server, http::client& web) -> task<> {
             EXPECT_EQ(co_await error_of_get(web, server.url("/a")),
                       http::errc::too_many_redirects);
             EXPECT_EQ(server.requests.size(), 2U);
         },
         {.redirects = 100});
}

TEST_P(client_redirects_test, a_form_may_redirect_to_itself) {
    talk({{redirect_to("/a", 303), answer_with("got")}},
         [](scripted_server& server, http::client& web) -> task<> {
             const std::string url = server.url("/a");
             auto answer =
                 or_throw(co_await web.send({.method = "POST", .url = url, .body = "form"}));
             EXPECT_EQ(or_throw(co_await answer.read_all(10)), "got");
             EXPECT_TRUE(server.requests.at(1).starts_with("GET /a "));
             EXPECT_FALSE(server.requests.at(1).find("Content-Length") != std::string::npos);
         },
         {.redirects = 1});
}

TEST_P(client_redirects_test, a_body_in_memory_is_sent_again) {
    talk({{redirect_to("/b", 307), answer_with("got")}},
         [](scripted_server& server, http::client& web) -> task<> {
             const std::string url = server.url("/a");
             auto answer =
                 or_throw(co_await web.send({.method = "POST", .url = url, .body = "form"}));
             EXPECT_TRUE(server.requests.at(1).starts_with("POST /b "));
             EXPECT_TRUE(server.requests.at(1).ends_with("\r\n\r\nform"));
         },
         {.redirects = 1});
}

INSTANTIATE_TEST_SUITE_P(backends, client_redirects_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
