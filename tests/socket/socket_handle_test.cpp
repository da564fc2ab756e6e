#include <simplenet/socket/socket_handle.hpp>

#include "support/descriptors.hpp"
#include "support/flavours.hpp"

#include <simplenet/blocking/local_datagram.hpp>
#include <simplenet/nonblocking/local_datagram.hpp>

#include <type_traits>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

class handle : public socket_handle {
public:
    explicit handle(unique_fd socket) noexcept
        : socket_handle{std::move(socket)} {}
};

handle make_handle() {
    return handle{
        unique_fd{detail::sys::socket(AF_INET, SOCK_STREAM, 0, detail::sys::mode::blocking)}};
}

TEST(socket_handle_test, owns_its_descriptor_until_it_is_destroyed) {
    int fd = -1;
    {
        const handle socket = make_handle();
        fd = socket.native_handle();
        EXPECT_TRUE(socket.is_open());
        EXPECT_TRUE(is_open(fd));
    }
    EXPECT_FALSE(is_open(fd));
}

TEST(socket_handle_test, close_can_be_called_twice) {
    handle socket = make_handle();
    const int fd = socket.native_handle();

    socket.close();
    socket.close();

    EXPECT_FALSE(is_open(fd));
    EXPECT_FALSE(socket.is_open());
    EXPECT_EQ(socket.native_handle(), -1);
}

TEST(socket_handle_test, release_leaves_the_descriptor_open) {
    handle socket = make_handle();
    const int fd = socket.native_handle();

    const unique_fd released = std::move(socket).release();

    EXPECT_EQ(released.get(), fd);
    EXPECT_TRUE(is_open(fd));
    EXPECT_FALSE(socket.is_open());
}

TEST(socket_handle_test, moving_moves_the_descriptor) {
    handle first = make_handle();
    handle second = make_handle();
    const int kept = first.native_handle();
    const int replaced = second.native_handle();

    second = std::move(first);

    EXPECT_EQ(second.native_handle(), kept);
    EXPECT_FALSE(is_open(replaced));
    EXPECT_FALSE(first.is_open());
}

template <class Socket>
class socket_class_test : public ::testing::Test {};

using socket_classes =
    ::testing::Types<blocking::tcp_stream, blocking::tcp_listener, blocking::udp_socket,
                     blocking::local_stream, blocking::local_listener, blocking::local_datagram,
                     nonblocking::tcp_stream, nonblocking::tcp_listener, nonblocking::udp_socket,
                     nonblocking::local_stream, nonblocking::local_listener,
                     nonblocking::local_datagram>;
TYPED_TEST_SUITE(socket_class_test, socket_classes);

TYPED_TEST(socket_class_test, moves_and_does_not_copy) {
    EXPECT_TRUE(std::is_nothrow_move_constructible_v<TypeParam>);
    EXPECT_TRUE(std::is_nothrow_move_assignable_v<TypeParam>);
    EXPECT_FALSE(std::is_copy_constructible_v<TypeParam>);
    EXPECT_FALSE(std::is_default_constructible_v<TypeParam>) << "a constructed object works";
    EXPECT_LE(sizeof(TypeParam), 2 * sizeof(int)) << "a descriptor, and for UDP a segment size";
}

TEST(options_test, every_options_struct_is_a_trivially_destructible_aggregate) {
    EXPECT_TRUE((std::is_aggregate_v<listen_options>) &&
                std::is_trivially_destructible_v<listen_options>);
    EXPECT_TRUE((std::is_aggregate_v<local_listen_options>) &&
                std::is_trivially_destructible_v<local_listen_options>);
    EXPECT_TRUE((std::is_aggregate_v<udp_options>) &&
                std::is_trivially_destructible_v<udp_options>);
    EXPECT_TRUE((std::is_aggregate_v<keep_alive_options>) &&
                std::is_trivially_destructible_v<keep_alive_options>);
}

} // namespace
