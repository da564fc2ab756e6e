#include "httpd/status/status_json.hpp"

#include "httpd/status/figures_sample.hpp"

#include <string_view>

#include <gtest/gtest.h>

namespace httpd {
namespace {

TEST(status_json_test, has_every_figure) {
    EXPECT_EQ(status_json(testing::sample_figures()),
              R"j({"version":"1.2.3","now":1e+06,"started":999000,"resident":4096,"cpu":1.5,)j"
              R"j("descriptors":7,"descriptor_limit":1024,"requests":[1,2,3,4,5,6],"bytes":1000,)j"
              R"j("incomplete":8,"durations":[0,1,159,18,433,1],)j"
              R"j("sites":[{"name":"example.org","bytes":70,"requests":[0,0,3,0,0,0]},)j"
              R"j({"name":"hostile\"\\\u000a\u00ff","bytes":0,"requests":[0,0,0,0,5,0]}],)j"
              R"j("servers":[{"address":"127.0.0.1:80","secure":false,"accepted":10,"refused":1,)j"
              R"j("failed":2,"handshakes_failed":4,"open":[2,3]},)j"
              R"j({"address":"[::1]:443","secure":true,"accepted":10,"refused":1,)j"
              R"j("failed":2,"handshakes_failed":4,"open":[2,3]}],)j"
              R"j("backends":[{"site":"example.org","route":"/api/*","address":"127.0.0.1:9000",)j"
              R"j("up":true,"active":1,"answered":20,"failures":0},)j"
              R"j({"site":"example.org","route":"*.php","address":"unix:/run/php.sock",)j"
              R"j("up":false,"active":0,"answered":0,"failures":3,"left_out":2.5}],)j"
              R"j("certificates":[{"file":"/etc/site.pem","days":1.5},{"file":"/etc/old.pem",)j"
              R"j("days":-1}],"reloads":5,"reloads_failed":1,"reload_latest_failed":true,)j"
              R"j("access_lost":11,"error_lost":12,"error_suppressed":13})j");
}

} // namespace
} // namespace httpd
