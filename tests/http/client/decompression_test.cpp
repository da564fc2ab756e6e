// Answers that are compressed, and those that pretend to be.

#include "compressed.hpp"
#include "scripted_server.hpp"

#include <string>

namespace simplenet::v0::testing {
namespace {

std::string encoded(std::string_view coding, std::string_view packed) {
    return answer_with(packed, "Content-Encoding: " + std::string{coding} + "\r\n");
}

class client_decompression_test : public client_test {
protected:
    void expect_text(const std::string& bytes, const std::string& text) {
        talk({{bytes}}, [&](scripted_server& server, http::client& web) -> task<> {
            EXPECT_EQ(co_await body_of_get(web, server.url()), text);
        });
    }
    void expect_failure(const std::string& bytes, std::error_code why,
                        http::client_options options = {}) {
        talk(
            {{bytes}},
            [&](scripted_server& server, http::client& web) -> task<> {
                EXPECT_EQ(co_await error_of_get(web, server.url()), why);
            },
            options);
    }
};

TEST_P(client_decompression_test, gzip_and_deflate_are_decompressed) {
    expect_text(encoded("gzip", gzipped("text")), "text");
    expect_text(encoded("X-GZIP", gzipped("text")), "text");
    expect_text(encoded("deflate", zlibbed("text")), "text");
    expect_text(encoded("deflate", deflated("text")), "text");
    expect_text(encoded("gzip", ""), "");
    expect_text(encoded("gzip", gzipped("")), "");
}

TEST_P(client_decompression_test, other_codings_come_as_they_are) {
    expect_text(encoded("br", "packed"), "packed");
    expect_text(encoded("identity", "plain"), "plain");
    expect_text(encoded("gzip, gzip", "packed twice"), "packed twice");
}

TEST_P(client_decompression_test, a_compressed_answer_says_so_and_has_no_length) {
    const std::string packed = gzipped("text");
    talk({{encoded("gzip", packed)}}, [&](scripted_server& server, http::client& web) -> task<> {
        auto answer = or_throw(co_await web.get(server.url()));
        EXPECT_TRUE(answer.is_decompressed());
        EXPECT_EQ(answer.content_length(), std::nullopt);
        EXPECT_EQ(answer.fields().find("Content-Encoding"), "gzip");
        EXPECT_EQ(answer.fields().find("Content-Length"), std::to_string(packed.size()));
        EXPECT_EQ(or_throw(co_await answer.read_all(100)), "text");
    });
}

TEST_P(client_decompression_test, nothing_is_decompressed_for_those_who_ask_themselves) {
    const std::string packed = gzipped("text");
    for (const char* const name : {"Accept-Encoding", "Range"}) {
        talk({{encoded("gzip", packed)}},
             [&](scripted_server& server, http::client& web) -> task<> {
                 http::fields fields;
                 fields.add(name, "x");
                 const std::string url = server.url();
                 auto answer = or_throw(co_await web.send({.url = url, .fields = &fields}));
                 EXPECT_FALSE(answer.is_decompressed());
                 EXPECT_EQ(or_throw(co_await answer.read_all(100)), packed);
             });
    }
}

TEST_P(client_decompression_test, data_that_is_cut_or_damaged_is_an_error) {
    const std::string packed = gzipped("a text that is cut");
    for (std::size_t size = 1; size < packed.size(); size += 4) {
        expect_failure(encoded("gzip", packed.substr(0, size)), http::errc::incomplete_message);
    }
    expect_failure(encoded("gzip", "rubbish"), http::errc::bad_response);
    expect_failure(encoded("gzip", packed + "rubbish"), http::errc::bad_response);
    expect_failure(encoded("deflate", "\xff\xff\xff"), http::errc::bad_response);
}

TEST_P(client_decompression_test, a_bomb_is_defused) {
    const std::string bomb = gzipped(std::string(20'000'000, '\0'));

    expect_failure(encoded("gzip", bomb), errc::limit_exceeded, {.decompressed_ratio = 100});
    expect_failure(encoded("gzip", bomb), errc::limit_exceeded,
                   {.decompressed_bytes = 500'000, .decompressed_ratio = 0});
}

TEST_P(client_decompression_test, a_bomb_in_many_members_is_defused) {
    std::string bombs;
    for (int each = 0; each < 20; ++each)
        bombs += gzipped(std::string(1'000'000, '\0'));

    expect_failure(encoded("gzip", bombs), errc::limit_exceeded);
}

TEST_P(client_decompression_test, a_megabyte_of_zeros_is_no_bomb) {
    const std::string zeros(1'000'000, '\0');
    expect_text(encoded("gzip", gzipped(zeros)), zeros);
}

INSTANTIATE_TEST_SUITE_P(backends, client_decompression_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
