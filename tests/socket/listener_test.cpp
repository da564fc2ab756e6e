// The listeners of both layers, as far as their behaviour does not depend on how they wait.

#include "support/error_of.hpp"
#include "support/flavours.hpp"
#include "support/on_processor.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <fstream>
#include <vector>

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

/// Prevents the process from opening further descriptors while it lives.
class no_descriptors_left {
public:
    no_descriptors_left() {
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        // The limit is the lowest free number, so nothing can be opened.
        const int lowest = ::dup(0);
        ::close(lowest);
        const rlimit none{static_cast<rlim_t>(lowest), before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    no_descriptors_left(const no_descriptors_left&) = delete;
    no_descriptors_left& operator=(const no_descriptors_left&) = delete;
    ~no_descriptors_left() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

private:
    rlimit before_{};
};

template <class Flavour>
class listener_test : public ::testing::Test {};
TYPED_TEST_SUITE(listener_test, all_flavours, flavour_name);

TYPED_TEST(listener_test, every_descriptor_is_close_on_exec_and_in_the_mode_of_its_layer) {
    auto listener = TypeParam::listen();
    const auto client = connect_to<TypeParam>(listener);
    const auto server = accept_one(listener);

    for (const int fd :
         {listener.native_handle(), client.native_handle(), server.native_handle()}) {
        EXPECT_TRUE(is_close_on_exec(fd));
        EXPECT_EQ(is_nonblocking(fd), !TypeParam::blocking);
    }
}

TYPED_TEST(listener_test, connections_are_accepted_in_order) {
    auto listener = TypeParam::listen();
    std::vector<typename TypeParam::stream> clients;
    for (const char* text : {"a", "b", "c"}) {
        clients.push_back(connect_to<TypeParam>(listener));
        EXPECT_TRUE(clients.back().write_some(std::string_view{text}));
    }

    for (const char* text : {"a", "b", "c"}) {
        auto server = accept_one(listener);
        EXPECT_EQ(read_text(server, 1), text);
    }
}

TYPED_TEST(listener_test, a_connection_whose_client_has_gone_is_still_accepted) {
    auto listener = TypeParam::listen();
    connect_to<TypeParam>(listener).close();

    auto server = accept_one(listener);

    EXPECT_EQ(read_to_the_end(server), errc::end_of_stream);
}

TYPED_TEST(listener_test, binding_a_name_that_is_taken_reports_address_in_use) {
    const auto first = TypeParam::listen();

    EXPECT_EQ(error_of(TypeParam::listener::bind(TypeParam::address_of(first))),
              std::errc::address_in_use);
}

TYPED_TEST(listener_test, a_closed_listener_accepts_nothing_and_frees_its_name) {
    auto listener = TypeParam::listen();
    const auto address = TypeParam::address_of(listener);
    auto client = connect_to<TypeParam>(listener);
    auto server = accept_one(listener);
    listener.close();

    EXPECT_EQ(error_of(listener.accept()), std::errc::bad_file_descriptor);
    EXPECT_TRUE(client.write_some("x"));
    EXPECT_EQ(read_text(server, 1), "x") << "accepted connections live on";
    // The server closes first, so with TCP its side goes to TIME_WAIT on the port.
    server.close();
    EXPECT_TRUE(TypeParam::listener::bind(address));
}

TYPED_TEST(listener_test, running_out_of_descriptors_is_reported_and_loses_no_connection) {
    auto listener = TypeParam::listen();
    const auto client = connect_to<TypeParam>(listener);
    await(listener.native_handle(), POLLIN);
    {
        const no_descriptors_left scarce;
        EXPECT_EQ(error_of(listener.accept()), std::errc::too_many_files_open);
        EXPECT_EQ(error_of(TypeParam::stream::connect(TypeParam::address_of(listener))),
                  std::errc::too_many_files_open);
        EXPECT_EQ(error_of(TypeParam::listener::bind(TypeParam::address_of(listener))),
                  std::errc::too_many_files_open);
    }

    EXPECT_TRUE(listener.accept());
}

TYPED_TEST(listener_test, a_backlog_below_zero_is_a_contract_violation) {
    EXPECT_DEATH((void)TypeParam::listen({.backlog = -1}), "contract violation");
}

TYPED_TEST(listener_test, a_backlog_of_zero_still_admits_one_connection) {
    auto listener = TypeParam::listen({.backlog = 0});

    EXPECT_TRUE(TypeParam::stream::connect(TypeParam::address_of(listener)));
}

template <class Flavour>
class tcp_listener_test : public ::testing::Test {
protected:
    static endpoint address_of(const typename Flavour::listener& listener) {
        return Flavour::address_of(listener);
    }
};
using tcp_flavours = ::testing::Types<blocking_tcp, nonblocking_tcp>;
TYPED_TEST_SUITE(tcp_listener_test, tcp_flavours, flavour_name);

TYPED_TEST(tcp_listener_test, port_0_is_a_free_port) {
    const auto listener = TypeParam::listen();

    EXPECT_NE(this->address_of(listener).port(), 0);
    EXPECT_TRUE(this->address_of(listener).address().is_loopback());
}

TYPED_TEST(tcp_listener_test, an_address_of_another_machine_is_not_available) {
    const endpoint elsewhere{or_throw(ip_address::parse("198.51.100.1")), 0}; // RFC 5737

    EXPECT_EQ(error_of(TypeParam::listener::bind(elsewhere)), std::errc::address_not_available);
}

TYPED_TEST(tcp_listener_test, listeners_share_a_port_only_if_all_of_them_allow_it) {
    const auto first = TypeParam::listen({.reuse_port = true});
    const endpoint at = this->address_of(first);

    EXPECT_TRUE(TypeParam::listener::bind(at, {.reuse_port = true}));
    EXPECT_EQ(error_of(TypeParam::listener::bind(at)), std::errc::address_in_use);
}

TYPED_TEST(tcp_listener_test, steering_by_processor_needs_a_shared_port) {
    EXPECT_EQ(error_of(TypeParam::listener::bind(endpoint::loopback(0), {.steer_by_cpu = true})),
              std::errc::invalid_argument);
}

// On loopback the processor of the client handles the handshake.
TYPED_TEST(tcp_listener_test, steered_connections_go_to_the_listener_of_their_processor) {
    const listen_options steered{.reuse_port = true, .steer_by_cpu = true};
    std::vector<typename TypeParam::listener> listeners;
    listeners.push_back(TypeParam::listen(steered));
    const endpoint at = this->address_of(listeners.front());
    listeners.push_back(or_throw(TypeParam::listener::bind(at, steered)));
    int processors = 0;
    for (int number = 0; number < 2; ++number) {
        const on_processor here{number};
        if (!here.moved) continue;
        ++processors;
        for (int each = 0; each < 8; ++each) {
            auto& listener = listeners[static_cast<std::size_t>(number)];
            const auto client = connect_to<TypeParam>(listener);
            pollfd waiting{.fd = listener.native_handle(), .events = POLLIN, .revents = 0};
            ASSERT_EQ(::poll(&waiting, 1, 5000), 1); // a blocking accept() would wait for ever
            EXPECT_TRUE(listener.accept());
        }
    }
    if (processors == 0) GTEST_SKIP() << "neither processor 0 nor 1 is ours";
}

TYPED_TEST(tcp_listener_test, a_steered_connection_needs_no_listener_of_its_processor) {
    auto only = TypeParam::listen({.reuse_port = true, .steer_by_cpu = true});
    const on_processor here{1};
    if (!here.moved) GTEST_SKIP() << "processor 1 is not ours";

    const auto client = connect_to<TypeParam>(only);

    pollfd waiting{.fd = only.native_handle(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&waiting, 1, 5000), 1);
    EXPECT_TRUE(only.accept());
}

TYPED_TEST(tcp_listener_test, reuse_address_is_on_unless_turned_off) {
    EXPECT_EQ(TypeParam::listen().reuse_address(), true);
    EXPECT_EQ(TypeParam::listen({.reuse_address = false}).reuse_address(), false);
}

TYPED_TEST(tcp_listener_test, without_reuse_address_a_port_in_time_wait_is_taken) {
    auto listener = TypeParam::listen({.reuse_address = false});
    const endpoint at = this->address_of(listener);
    auto client = connect_to<TypeParam>(listener);
    auto server = accept_one(listener);
    server.close();
    EXPECT_EQ(read_to_the_end(client), errc::end_of_stream);
    client.close();
    listener.close();

    EXPECT_EQ(error_of(TypeParam::listener::bind(at, {.reuse_address = false})),
              std::errc::address_in_use);
}

TYPED_TEST(tcp_listener_test, an_ipv6_listener_accepts_ipv4_unless_it_is_ipv6_only) {
    using stream = blocking::tcp_stream;
    auto both = or_throw(TypeParam::listener::bind({ip_address::any_v6(), 0}));
    const auto six =
        or_throw(TypeParam::listener::bind({ip_address::any_v6(), 0}, {.v6_only = true}));

    const auto client =
        or_throw(stream::connect(endpoint::loopback(this->address_of(both).port())));
    EXPECT_EQ(accept_one(both).remote_endpoint()->address().unmapped(), ip_address::loopback_v4());
    EXPECT_EQ(error_of(stream::connect(endpoint::loopback(this->address_of(six).port()))),
              std::errc::connection_refused);
    EXPECT_TRUE(stream::connect({ip_address::loopback_v6(), this->address_of(six).port()}));
}

template <class Flavour>
class local_listener_test : public ::testing::Test {
protected:
    temporary_directory directory_;
};
using local_flavours = ::testing::Types<blocking_local, nonblocking_local>;
TYPED_TEST_SUITE(local_listener_test, local_flavours, flavour_name);

TYPED_TEST(local_listener_test, a_path_that_exists_is_taken_even_if_its_server_is_gone) {
    const auto at = or_throw(local_endpoint::parse(this->directory_ / "socket"));
    or_throw(TypeParam::listener::bind(at)).close();

    EXPECT_EQ(error_of(TypeParam::listener::bind(at)), std::errc::address_in_use);
}

TYPED_TEST(local_listener_test, unlink_existing_takes_the_path_over) {
    const auto at = or_throw(local_endpoint::parse(this->directory_ / "socket"));
    const auto predecessor = or_throw(TypeParam::listener::bind(at));

    auto listener = or_throw(TypeParam::listener::bind(at, {.unlink_existing = true}));
    const auto client = or_throw(TypeParam::stream::connect(at));

    EXPECT_TRUE(accept_one(listener).is_open());
}

TYPED_TEST(local_listener_test, unlink_existing_accepts_a_path_that_does_not_exist) {
    const auto at = or_throw(local_endpoint::parse(this->directory_ / "socket"));

    EXPECT_TRUE(TypeParam::listener::bind(at, {.unlink_existing = true}));
}

TYPED_TEST(local_listener_test, unlink_existing_removes_nothing_but_sockets) {
    const std::string file = this->directory_ / "file";
    std::ofstream{file} << "precious";
    const std::string link = this->directory_ / "link";
    const auto target = or_throw(local_endpoint::parse(this->directory_ / "socket"));
    const auto listener = or_throw(TypeParam::listener::bind(target));
    std::filesystem::create_symlink(this->directory_ / "socket", link);

    for (const std::string& path : {file, link, this->directory_ / ""}) {
        EXPECT_EQ(error_of(TypeParam::listener::bind(or_throw(local_endpoint::parse(path)),
                                                     {.unlink_existing = true})),
                  std::errc::address_in_use)
            << path;
        EXPECT_TRUE(std::filesystem::exists(path));
    }
}

TYPED_TEST(local_listener_test, an_abstract_name_is_free_as_soon_as_its_listener_is_closed) {
    auto listener = TypeParam::listen();
    const auto at = TypeParam::address_of(listener);
    EXPECT_TRUE(at.is_abstract());

    EXPECT_EQ(error_of(TypeParam::listener::bind(at, {.unlink_existing = true})),
              std::errc::address_in_use);
    listener.close();
    EXPECT_TRUE(TypeParam::listener::bind(at));
}

TYPED_TEST(local_listener_test, a_directory_that_does_not_exist_is_reported) {
    const auto at = or_throw(local_endpoint::parse(this->directory_ / "nowhere/socket"));

    EXPECT_EQ(error_of(TypeParam::listener::bind(at)), std::errc::no_such_file_or_directory);
}

TYPED_TEST(local_listener_test, a_path_too_long_for_the_kernel_is_refused_before_the_call) {
    const std::string path = this->directory_ / std::string(200, 'x');

    EXPECT_EQ(error_of(local_endpoint::parse(path)), std::errc::filename_too_long);
}

} // namespace
