#include "ip/native.hpp"

#include <simplenet/core/unique_fd.hpp>

#include "ip/random_address.hpp"
#include "support/error_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using namespace simplenet;
using namespace std::string_view_literals;
using detail::endpoint_from_native;
using detail::local_endpoint_from_native;
using detail::native_address;
using detail::to_native;

constexpr socklen_t path_offset = offsetof(sockaddr_un, sun_path);

local_endpoint parsed(std::string_view path) {
    return local_endpoint::parse(path).value();
}

local_endpoint abstract(std::string_view name) {
    return local_endpoint::abstract(name).value();
}

/// A sockaddr_un as the kernel writes it, in memory of exactly its size.
std::vector<char> unix_bytes(std::string_view path) {
    const sa_family_t family = AF_UNIX;
    std::vector<char> bytes(path_offset + path.size());
    std::memcpy(bytes.data(), &family, sizeof family);
    std::ranges::copy(path, bytes.begin() + path_offset);
    return bytes;
}

result<local_endpoint> from_unix_bytes(std::string_view path) {
    const std::vector<char> bytes = unix_bytes(path);
    return local_endpoint_from_native(reinterpret_cast<const sockaddr*>(bytes.data()),
                                      static_cast<socklen_t>(bytes.size()));
}

/// The name that the kernel reports for a socket bound to `to`.
native_address name_after_bind(int family, native_address to) {
    const unique_fd socket{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(::bind(socket.get(), to.data(), to.size), 0) << std::strerror(errno);

    native_address name;
    name.size = sizeof name.storage;
    EXPECT_EQ(::getsockname(socket.get(), name.data(), &name.size), 0);
    return name;
}

TEST(native_test, a_v4_endpoint_is_a_sockaddr_in_in_network_order) {
    const native_address native =
        to_native(endpoint{ip_address::parse("192.0.2.1").value(), 0x1234});
    sockaddr_in v4;
    ASSERT_EQ(native.size, sizeof v4);
    std::memcpy(&v4, native.data(), sizeof v4);

    EXPECT_EQ(v4.sin_family, AF_INET);
    EXPECT_EQ(ntohs(v4.sin_port), 0x1234);
    EXPECT_EQ(ntohl(v4.sin_addr.s_addr), 0xc0000201U);
}

TEST(native_test, a_v6_endpoint_is_a_sockaddr_in6_with_its_scope) {
    const native_address native = to_native(endpoint{ip_address::parse("fe80::1%3").value(), 80});
    sockaddr_in6 v6;
    ASSERT_EQ(native.size, sizeof v6);
    std::memcpy(&v6, native.data(), sizeof v6);

    EXPECT_EQ(v6.sin6_family, AF_INET6);
    EXPECT_EQ(ntohs(v6.sin6_port), 80);
    EXPECT_EQ(v6.sin6_scope_id, 3U);
    EXPECT_EQ(v6.sin6_flowinfo, 0U);
    EXPECT_EQ(v6.sin6_addr.s6_addr[0], 0xfe);
    EXPECT_EQ(v6.sin6_addr.s6_addr[15], 1);
}

TEST(native_test, every_endpoint_survives_a_round_trip_through_a_sockaddr) {
    random_addresses random;
    for (int round = 0; round < 5'000; ++round) {
        const auto port = static_cast<std::uint16_t>(random.number());
        for (const ip_address& address : {random.v4(), random.v6(), random.v6(random.number())}) {
            const endpoint made{address, port};
            const native_address native = to_native(made);
            ASSERT_EQ(endpoint_from_native(native.data(), native.size).value(), made);
        }
    }
}

TEST(native_test, another_family_is_not_an_endpoint) {
    const native_address local = to_native(parsed("/run/a"));

    EXPECT_EQ(error_of(endpoint_from_native(local.data(), local.size)),
              std::errc::address_family_not_supported);
}

TEST(native_test, an_address_too_short_for_its_family_is_not_an_endpoint) {
    for (const endpoint& whole : {endpoint::loopback(1), endpoint{ip_address::loopback_v6(), 1}}) {
        const native_address native = to_native(whole);
        for (socklen_t size = 0; size < native.size; ++size) {
            // Memory of exactly that size, so that a sanitizer sees a read beyond it.
            std::vector<char> bytes(size);
            if (size != 0) std::memcpy(bytes.data(), native.data(), size);
            EXPECT_EQ(error_of(endpoint_from_native(reinterpret_cast<const sockaddr*>(bytes.data()),
                                                    size)),
                      std::errc::address_family_not_supported);
        }
    }
}

TEST(native_test, an_endpoint_is_read_at_the_alignment_of_a_sockaddr) {
    const native_address native = to_native(endpoint{ip_address::loopback_v6(), 80});
    static_assert(alignof(sockaddr) < alignof(sockaddr_in6));
    alignas(sockaddr_in6) std::array<char, sizeof(sockaddr_in6) + alignof(sockaddr)> bytes;
    char* const at = bytes.data() + alignof(sockaddr);
    std::memcpy(at, native.data(), native.size);

    const auto read = endpoint_from_native(reinterpret_cast<const sockaddr*>(at), native.size);

    EXPECT_EQ(read.value(), (endpoint{ip_address::loopback_v6(), 80}));
}

TEST(native_test, the_kernel_binds_a_v4_endpoint) {
    native_address name = name_after_bind(AF_INET, to_native(endpoint::loopback(0)));
    const endpoint bound = endpoint_from_native(name.data(), name.size).value();

    EXPECT_EQ(bound.address(), ip_address::loopback_v4());
    EXPECT_NE(bound.port(), 0);
}

TEST(native_test, a_path_ends_in_nul) {
    const native_address native = to_native(parsed("/run/a"));

    EXPECT_EQ(native.size, path_offset + 7);
    EXPECT_EQ(native.data()->sa_family, AF_UNIX);
    EXPECT_STREQ(reinterpret_cast<const char*>(native.data()) + path_offset, "/run/a");
}

TEST(native_test, an_abstract_name_begins_with_nul_and_does_not_end_with_one) {
    const native_address native = to_native(abstract("ab"));

    ASSERT_EQ(native.size, path_offset + 3);
    EXPECT_EQ(std::memcmp(reinterpret_cast<const char*>(native.data()) + path_offset, "\0ab", 3),
              0);
}

TEST(native_test, an_unnamed_endpoint_is_only_a_family) {
    const native_address native = to_native(local_endpoint{});

    EXPECT_EQ(native.size, sizeof(sa_family_t));
    EXPECT_EQ(native.data()->sa_family, AF_UNIX);
}

TEST(native_test, every_local_endpoint_survives_a_round_trip_through_a_sockaddr) {
    for (std::size_t size = 1; size <= local_endpoint::max_name_size; ++size) {
        const std::string name(size, 'x');
        for (const local_endpoint& made : {parsed(name), abstract(name), local_endpoint{}}) {
            const native_address native = to_native(made);
            ASSERT_LE(native.size, sizeof(sockaddr_un));
            ASSERT_EQ(local_endpoint_from_native(native.data(), native.size).value(), made);
        }
    }
}

TEST(native_test, a_path_is_read_with_or_without_its_nul) {
    EXPECT_EQ(from_unix_bytes("/run/a").value(), parsed("/run/a"));
    EXPECT_EQ(from_unix_bytes("/run/a\0"sv).value(), parsed("/run/a"));
    EXPECT_EQ(from_unix_bytes("/run/a\0rest"sv).value(), parsed("/run/a"));
}

TEST(native_test, an_abstract_name_is_read_to_its_last_byte) {
    EXPECT_EQ(from_unix_bytes("\0ab"sv).value(), abstract("ab"));
    EXPECT_EQ(from_unix_bytes("\0ab\0"sv).value(), abstract("ab\0"sv));
}

TEST(native_test, the_empty_abstract_name_of_another_program_is_read) {
    const local_endpoint shared = from_unix_bytes("\0"sv).value();

    EXPECT_TRUE(shared.is_abstract());
    EXPECT_EQ(shared.abstract_name(), "");
    EXPECT_EQ(to_native(shared).size, path_offset + 1);
}

TEST(native_test, an_empty_address_is_unnamed) {
    EXPECT_TRUE(local_endpoint_from_native(nullptr, 0).value().is_unnamed());
    EXPECT_TRUE(from_unix_bytes("").value().is_unnamed());
}

TEST(native_test, another_family_is_not_a_local_endpoint) {
    const native_address v4 = to_native(endpoint::loopback(1));
    const char half_a_family = AF_UNIX;

    EXPECT_EQ(error_of(local_endpoint_from_native(v4.data(), v4.size)),
              std::errc::address_family_not_supported);
    EXPECT_EQ(
        error_of(local_endpoint_from_native(reinterpret_cast<const sockaddr*>(&half_a_family), 1)),
        std::errc::address_family_not_supported);
}

TEST(native_test, an_address_longer_than_a_sockaddr_un_is_not_a_local_endpoint) {
    EXPECT_EQ(error_of(from_unix_bytes(std::string(109, 'x'))),
              std::errc::address_family_not_supported);
    EXPECT_EQ(error_of(from_unix_bytes(std::string(109, '\0'))),
              std::errc::address_family_not_supported);
    EXPECT_EQ(error_of(from_unix_bytes(std::string(200, 'x'))),
              std::errc::address_family_not_supported);
}

TEST(native_test, the_kernel_binds_a_path) {
    const std::string path = ::testing::TempDir() + "simplenet-native-test.sock";
    ::unlink(path.c_str());

    const native_address name = name_after_bind(AF_UNIX, to_native(parsed(path)));

    EXPECT_EQ(local_endpoint_from_native(name.data(), name.size).value(), parsed(path));
    ::unlink(path.c_str());
}

TEST(native_test, the_kernel_binds_an_abstract_name) {
    const local_endpoint made = abstract("simplenet-native-test-" + std::to_string(::getpid()));

    const native_address name = name_after_bind(AF_UNIX, to_native(made));

    EXPECT_EQ(local_endpoint_from_native(name.data(), name.size).value(), made);
}

TEST(native_test, the_kernel_picks_an_abstract_name_for_an_unnamed_endpoint) {
    const native_address name = name_after_bind(AF_UNIX, to_native(local_endpoint{}));

    EXPECT_TRUE(local_endpoint_from_native(name.data(), name.size).value().is_abstract());
}

TEST(native_test, a_path_that_fills_the_kernels_structure_survives) {
    std::string path = ::testing::TempDir();
    path.append(sizeof(sockaddr_un::sun_path) - path.size(), 'x');
    ::unlink(path.c_str());
    const local_endpoint full = from_unix_bytes(path).value();

    // The kernel counts a NUL for which the structure has no space.
    const native_address name = name_after_bind(AF_UNIX, to_native(full));
    EXPECT_EQ(name.size, sizeof(sockaddr_un) + 1);
    EXPECT_EQ(local_endpoint_from_native(name.data(), name.size).value(), full);
    EXPECT_EQ(full.path(), path);
    ::unlink(path.c_str());
}

TEST(native_test, a_socket_that_was_never_bound_is_unnamed) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const unique_fd ours{pair[0]};
    const unique_fd theirs{pair[1]};
    native_address name;
    name.size = sizeof name.storage;

    ASSERT_EQ(::getpeername(ours.get(), name.data(), &name.size), 0);

    EXPECT_TRUE(local_endpoint_from_native(name.data(), name.size).value().is_unnamed());
}

} // namespace
