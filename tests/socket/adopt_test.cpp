#include "support/error_of.hpp"
#include "support/flavours.hpp"

#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

/// A descriptor that could be passed to adopt(), and the classes that accept it. It comes from
/// elsewhere, so it is neither CLOEXEC nor in a particular mode.
struct candidate {
    std::string name; // of the class that accepts it, or a description
    std::function<int()> make;
};

int raw_socket(int family, int type, int protocol = 0) {
    return ::socket(family, type, protocol);
}
int raw_listener(int family, int protocol = 0) {
    const int fd = ::socket(family, SOCK_STREAM, protocol);
    if (family == AF_UNIX) { // autobind: an abstract name
        const sockaddr name{.sa_family = AF_UNIX, .sa_data = {}};
        EXPECT_EQ(::bind(fd, &name, sizeof name.sa_family), 0);
    }
    EXPECT_EQ(::listen(fd, 1), 0);
    return fd;
}

const std::vector<candidate>& candidates() {
    static const std::vector<candidate> all{
        {"tcp_stream", [] { return raw_socket(AF_INET, SOCK_STREAM); }},
        {"tcp_stream", [] { return raw_socket(AF_INET6, SOCK_STREAM); }},
        {"tcp_listener", [] { return raw_listener(AF_INET); }},
        {"tcp_listener", [] { return raw_listener(AF_INET6); }},
        {"udp_socket", [] { return raw_socket(AF_INET, SOCK_DGRAM); }},
        {"udp_socket", [] { return raw_socket(AF_INET6, SOCK_DGRAM); }},
        {"local_stream", [] { return raw_socket(AF_UNIX, SOCK_STREAM); }},
        {"local_listener", [] { return raw_listener(AF_UNIX); }},
        {"local datagram socket", [] { return raw_socket(AF_UNIX, SOCK_DGRAM); }},
        {"local packet socket", [] { return raw_socket(AF_UNIX, SOCK_SEQPACKET); }},
        {"netlink socket", [] { return raw_socket(AF_NETLINK, SOCK_DGRAM); }},
    };
    return all;
}

template <class Socket>
struct class_traits;
#define SIMPLENET_TEST_CLASS(layer, unit)                                                          \
    template <>                                                                                    \
    struct class_traits<layer::unit> {                                                             \
        static constexpr const char* name = #unit;                                                 \
        static constexpr bool nonblocking =                                                        \
            std::is_same_v<layer::unit, simplenet::nonblocking::unit>;                             \
        using other = std::conditional_t<nonblocking, simplenet::blocking::unit,                   \
                                         simplenet::nonblocking::unit>;                            \
    }
SIMPLENET_TEST_CLASS(blocking, tcp_stream);
SIMPLENET_TEST_CLASS(blocking, tcp_listener);
SIMPLENET_TEST_CLASS(blocking, udp_socket);
SIMPLENET_TEST_CLASS(blocking, local_stream);
SIMPLENET_TEST_CLASS(blocking, local_listener);
SIMPLENET_TEST_CLASS(nonblocking, tcp_stream);
SIMPLENET_TEST_CLASS(nonblocking, tcp_listener);
SIMPLENET_TEST_CLASS(nonblocking, udp_socket);
SIMPLENET_TEST_CLASS(nonblocking, local_stream);
SIMPLENET_TEST_CLASS(nonblocking, local_listener);

template <class Socket>
class adopt_test : public ::testing::Test {
protected:
    using traits = class_traits<Socket>;

    /// A descriptor that this class accepts.
    static unique_fd suitable() {
        for (const candidate& each : candidates()) {
            if (each.name == traits::name) return unique_fd{each.make()};
        }
        return {};
    }
};

using adopting_classes =
    ::testing::Types<blocking::tcp_stream, blocking::tcp_listener, blocking::udp_socket,
                     blocking::local_stream, blocking::local_listener, nonblocking::tcp_stream,
                     nonblocking::tcp_listener, nonblocking::udp_socket, nonblocking::local_stream,
                     nonblocking::local_listener>;
TYPED_TEST_SUITE(adopt_test, adopting_classes);

TYPED_TEST(adopt_test, sets_close_on_exec_and_the_mode_of_a_suitable_socket) {
    for (const candidate& each : candidates()) {
        if (each.name != TestFixture::traits::name) continue;
        for (const int before : {0, O_NONBLOCK}) {
            unique_fd fd{each.make()};
            const int number = fd.get();
            ASSERT_EQ(::fcntl(number, F_SETFL, before), 0);

            const auto adopted = TypeParam::adopt(std::move(fd));

            ASSERT_TRUE(adopted) << adopted.error().message();
            EXPECT_EQ(adopted->native_handle(), number);
            EXPECT_TRUE(is_close_on_exec(number));
            EXPECT_EQ(is_nonblocking(number), TestFixture::traits::nonblocking);
        }
    }
}

TYPED_TEST(adopt_test, refuses_and_closes_every_other_kind_of_socket) {
    for (const candidate& each : candidates()) {
        if (each.name == TestFixture::traits::name) continue;
        unique_fd fd{each.make()};
        const int number = fd.get();
        ASSERT_GE(number, 0);

        EXPECT_EQ(error_of(TypeParam::adopt(std::move(fd))), std::errc::invalid_argument)
            << each.name;
        EXPECT_FALSE(is_open(number)) << each.name;
    }
}

TYPED_TEST(adopt_test, refuses_and_closes_other_descriptors) {
    unique_fd file{::open("/dev/null", O_RDWR)};
    const int number = file.get();

    EXPECT_EQ(error_of(TypeParam::adopt(std::move(file))), std::errc::not_a_socket);
    EXPECT_FALSE(is_open(number));
}

TYPED_TEST(adopt_test, refuses_a_bad_descriptor) {
    EXPECT_EQ(error_of(TypeParam::adopt(unique_fd{})), std::errc::bad_file_descriptor);
}

TYPED_TEST(adopt_test, from_changes_the_mode_and_keeps_the_descriptor) {
    auto socket = or_throw(TypeParam::adopt(this->suitable()));
    const int number = socket.native_handle();

    auto other = or_throw(TestFixture::traits::other::from(std::move(socket)));
    EXPECT_EQ(other.native_handle(), number);
    EXPECT_NE(is_nonblocking(number), TestFixture::traits::nonblocking);
    EXPECT_FALSE(socket.is_open());

    const auto again = or_throw(TypeParam::from(std::move(other)));
    EXPECT_EQ(again.native_handle(), number);
    EXPECT_EQ(is_nonblocking(number), TestFixture::traits::nonblocking);
}

TYPED_TEST(adopt_test, from_a_closed_socket_fails) {
    auto socket = or_throw(TypeParam::adopt(this->suitable()));
    socket.close();

    EXPECT_EQ(error_of(TestFixture::traits::other::from(std::move(socket))),
              std::errc::bad_file_descriptor);
}

TEST(adopt_mptcp_test, multipath_tcp_is_tcp) {
    const int fd = raw_socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
    if (fd < 0) GTEST_SKIP() << "this kernel has no MPTCP";
    EXPECT_TRUE(blocking::tcp_stream::adopt(unique_fd{fd}));
    EXPECT_TRUE(blocking::tcp_listener::adopt(unique_fd{raw_listener(AF_INET, IPPROTO_MPTCP)}));
}

} // namespace
