#include <simplenet/socket/socket_names.hpp>

#include "support/error_of.hpp"
#include "support/flavours.hpp"
#include "support/temporary_directory.hpp"

#include <unistd.h>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

template <class Flavour>
class socket_names_test : public ::testing::Test {};
TYPED_TEST_SUITE(socket_names_test, all_flavours, flavour_name);

TYPED_TEST(socket_names_test, each_side_of_a_connection_knows_the_other) {
    auto listener = TypeParam::listen();
    const auto client = connect_to<TypeParam>(listener);
    const auto server = accept_one(listener);

    EXPECT_EQ(or_throw(client.remote_endpoint()), TypeParam::address_of(listener));
    EXPECT_EQ(or_throw(server.local_endpoint()), TypeParam::address_of(listener));
    EXPECT_EQ(or_throw(server.remote_endpoint()), or_throw(client.local_endpoint()));
}

TYPED_TEST(socket_names_test, a_listener_has_no_peer) {
    const auto listener = TypeParam::listen();

    EXPECT_EQ(error_of(listener.remote_endpoint()), std::errc::not_connected);
}

template <class Flavour>
class local_names_test : public ::testing::Test {};
using local_flavours = ::testing::Types<blocking_local, nonblocking_local>;
TYPED_TEST_SUITE(local_names_test, local_flavours, flavour_name);

TYPED_TEST(local_names_test, a_path_is_reported_as_it_was_bound) {
    const temporary_directory directory;
    const auto at = or_throw(local_endpoint::parse(directory / "socket"));
    auto listener = or_throw(TypeParam::listener::bind(at));

    const auto client = connect_to<TypeParam>(listener);
    const auto server = accept_one(listener);

    EXPECT_EQ(or_throw(listener.local_endpoint()), at);
    EXPECT_EQ(or_throw(client.remote_endpoint()), at);
    EXPECT_EQ(or_throw(server.local_endpoint()), at);
}

TYPED_TEST(local_names_test, a_path_of_the_greatest_length_is_reported_completely) {
    const temporary_directory directory;
    std::string path = directory / "x";
    path.resize(local_endpoint::max_name_size, 'x');
    const auto at = or_throw(local_endpoint::parse(path));

    const auto listener = or_throw(TypeParam::listener::bind(at));

    EXPECT_EQ(or_throw(listener.local_endpoint()).path(), path);
}

TYPED_TEST(local_names_test, an_abstract_name_is_reported_with_its_nuls) {
    using namespace std::string_literals;
    const auto name = "simplenet\0test "s + std::to_string(::getpid());
    const auto at = or_throw(local_endpoint::abstract(name));

    auto listener = or_throw(TypeParam::listener::bind(at));
    const auto client = connect_to<TypeParam>(listener);

    EXPECT_EQ(or_throw(listener.local_endpoint()).abstract_name(), name);
    EXPECT_EQ(or_throw(client.remote_endpoint()), at);
}

TYPED_TEST(local_names_test, clients_and_pairs_are_unnamed) {
    auto listener = TypeParam::listen();
    const auto client = connect_to<TypeParam>(listener);
    const auto [left, right] = or_throw(TypeParam::stream::pair());

    EXPECT_TRUE(or_throw(client.local_endpoint()).is_unnamed());
    EXPECT_TRUE(or_throw(accept_one(listener).remote_endpoint()).is_unnamed());
    EXPECT_TRUE(or_throw(left.local_endpoint()).is_unnamed());
    EXPECT_TRUE(or_throw(left.remote_endpoint()).is_unnamed());
    EXPECT_TRUE(or_throw(right.local_endpoint()).is_unnamed());
}

TYPED_TEST(local_names_test, peer_credentials_identify_the_peer) {
    auto listener = TypeParam::listen();
    auto client = connect_to<TypeParam>(listener);
    const auto server = accept_one(listener);
    const process_credentials we{.pid = ::getpid(), .uid = ::getuid(), .gid = ::getgid()};

    EXPECT_EQ(or_throw(client.peer_credentials()), we);
    EXPECT_EQ(or_throw(server.peer_credentials()), we);

    client.close();
    EXPECT_EQ(or_throw(server.peer_credentials()), we) << "remembered";
    EXPECT_EQ(error_of(client.peer_credentials()), std::errc::bad_file_descriptor);
}

TYPED_TEST(local_names_test, unlink_path_removes_only_the_name) {
    const temporary_directory directory;
    const std::string path = directory / "socket";
    const auto at = or_throw(local_endpoint::parse(path));
    auto listener = or_throw(TypeParam::listener::bind(at));
    auto client = connect_to<TypeParam>(listener);

    EXPECT_TRUE(listener.unlink_path());

    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(error_of(TypeParam::stream::connect(at)), std::errc::no_such_file_or_directory);
    auto server = accept_one(listener);
    EXPECT_TRUE(client.write_some("still here"));
    EXPECT_EQ(read_text(server, 10), "still here");
    EXPECT_EQ(error_of(listener.unlink_path()), std::errc::no_such_file_or_directory);
}

TYPED_TEST(local_names_test, unlink_path_of_an_abstract_name_does_nothing) {
    EXPECT_TRUE(TypeParam::listen().unlink_path());
}

TYPED_TEST(local_names_test, closing_a_listener_leaves_its_path) {
    const temporary_directory directory;
    const std::string path = directory / "socket";
    const auto at = or_throw(local_endpoint::parse(path));

    or_throw(TypeParam::listener::bind(at)).close();

    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_EQ(error_of(TypeParam::stream::connect(at)), std::errc::connection_refused);
}

} // namespace
