#include <simplenet/http/basic_credentials.hpp>

#include <gtest/gtest.h>
#include <string_view>

namespace simplenet::v0 {
namespace {

std::optional<http::basic_credentials> credentials_of(std::string_view value) {
    http::fields asked;
    asked.add("Authorization", value);
    return http::basic_credentials::of(asked);
}

// The example of RFC 7617, section 2.
TEST(basic_credentials_test, a_name_and_a_password_are_read) {
    for (const std::string_view value :
         {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}) {
        const auto read = credentials_of(value);
        ASSERT_TRUE(read) << value;
        EXPECT_EQ(read->user, "Aladdin");
        EXPECT_EQ(read->password, "open sesame");
    }
}

TEST(basic_credentials_test, a_password_may_have_colons_and_both_may_be_empty) {
    EXPECT_EQ(credentials_of("Basic YTpiOmM=")->password, "b:c");
    EXPECT_EQ(credentials_of("Basic Og==")->user, "");
}

TEST(basic_credentials_test, everything_else_is_none) {
    for (const std::string_view value :
         {"", "Basic", "Basic ", "Basic QQ==", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ", "Bearer YTpi",
          "Basic YTpi Yg==", "Basic YQA6Yg==", "BasicYTpi", "Basic YToKYg==", "Basic *"}) {
        EXPECT_FALSE(credentials_of(value)) << value;
    }
    http::fields twice;
    twice.add("Authorization", "Basic YTpi").add("Authorization", "Basic YTpi");
    EXPECT_FALSE(http::basic_credentials::of(twice));
    EXPECT_FALSE(http::basic_credentials::of({}));
}

} // namespace
} // namespace simplenet::v0
