#include <simplenet/server/inherited_listeners.hpp>

#include "support/backend_test.hpp"
#include "support/descriptors.hpp"
#include "support/inherited_descriptors.hpp"
#include "support/temporary_directory.hpp"
#include "sys/seam.hpp"

#include <simplenet/blocking/local_stream.hpp>
#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/blocking/udp_socket.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;

TEST(inherited_listeners_test, there_are_none_without_the_variables) {
    EXPECT_EQ(in_child(passing(tcp_listening()), [] { return inherited(); }), "none");
    EXPECT_EQ(in_child(passing(tcp_listening()),
                       [] {
                           set("LISTEN_FDS", "1"); // of a parent that did not say for whom
                           return inherited();
                       }),
              "none");
    EXPECT_EQ(in_child({},
                       [] {
                           set_pid_and_count(0);
                           return inherited();
                       }),
              "none");
}

TEST(inherited_listeners_test, gives_the_sockets_their_names_in_order) {
    EXPECT_EQ(in_child(passing(tcp_listening(), tcp_listening(), tcp_listening()),
                       [] {
                           set_pid_and_count(3);
                           set("LISTEN_FDNAMES", "web:admin:web");
                           return inherited();
                       }),
              "web=3 admin=4 web=5");
}

TEST(inherited_listeners_test, without_names_they_are_unknown) {
    EXPECT_EQ(in_child(passing(tcp_listening(), tcp_listening()),
                       [] {
                           set_pid_and_count(2);
                           return inherited();
                       }),
              "unknown=3 unknown=4");
}

TEST(inherited_listeners_test, later_calls_are_empty_and_the_environment_stays) {
    EXPECT_EQ(in_child(passing(tcp_listening()),
                       [] {
                           set_pid_and_count(1);
                           set("LISTEN_FDNAMES", "web");
                           std::string all;
                           for (int call = 0; call < 3; ++call)
                               all += inherited() + ", ";
                           return all + std::getenv("LISTEN_FDS") + std::getenv("LISTEN_FDNAMES");
                       }),
              "web=3, none, none, 1web");
}

TEST(inherited_listeners_test, they_are_closed_on_exec) {
    EXPECT_EQ(in_child(passing(tcp_listening(), tcp_listening()),
                       [] {
                           set_pid_and_count(2);
                           const bool before = is_close_on_exec(3) || is_close_on_exec(4);
                           const std::string found = inherited();
                           const bool after = is_close_on_exec(3) && is_close_on_exec(4);
                           return found + (before ? " before" : "") + (after ? " after" : "");
                       }),
              "unknown=3 unknown=4 after");
}

TEST(inherited_listeners_test, those_of_another_process_are_left_alone) {
    EXPECT_EQ(in_child(passing(tcp_listening()),
                       [] {
                           set_pid_and_count(1);
                           set("LISTEN_PID", std::to_string(::getppid()));
                           const std::string found = inherited();
                           return found + (is_open(3) && !is_close_on_exec(3) ? "" : "!");
                       }),
              "none");
}

TEST(inherited_listeners_test, a_forked_child_does_not_take_those_of_its_parent) {
    EXPECT_EQ(in_child(passing(tcp_listening()),
                       [] {
                           set_pid_and_count(1);
                           const std::string of_child = in_child({}, [] { return inherited(); });
                           return of_child + ", " + inherited();
                       }),
              "none, unknown=3");
}

TEST(inherited_listeners_test, a_forked_child_may_be_passed_its_own) {
    EXPECT_EQ(in_child(passing(tcp_listening()),
                       [] {
                           set_pid_and_count(1);
                           const std::string first = inherited();
                           return first + ", " + in_child(passing(tcp_listening()), [] {
                                      set_pid_and_count(1);
                                      return inherited();
                                  });
                       }),
              "unknown=3, unknown=3");
}

TEST(inherited_listeners_test, one_of_several_threads_gets_them) {
    EXPECT_EQ(in_child(passing(tcp_listening(), tcp_listening()),
                       [] {
                           set_pid_and_count(2);
                           std::atomic<std::size_t> found = 0;
                           std::atomic<int> ready = 0;
                           std::array<std::vector<inherited_listener>, 4> each;
                           std::vector<std::thread> threads;
                           for (auto& mine : each) {
                               threads.emplace_back([&] {
                                   ++ready;
                                   while (ready < 4) {
                                   }
                                   mine = or_throw(inherited_listeners());
                                   found += mine.size();
                               });
                           }
                           for (std::thread& thread : threads)
                               thread.join();
                           return std::to_string(found);
                       }),
              "2");
}

TEST(inherited_listeners_test, sockets_of_other_families_and_datagrams_are_taken) {
    const temporary_directory directory;
    unique_fd local{checked(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))};
    const sa_family_t unnamed = AF_UNIX; // the kernel chooses a name
    checked(::bind(local.get(), reinterpret_cast<const sockaddr*>(&unnamed), sizeof unnamed));
    checked(::listen(local.get(), 1));
    unique_fd udp = or_throw(blocking::udp_socket::bind(endpoint::loopback(0))).release();

    EXPECT_EQ(in_child(passing(std::move(local), std::move(udp)),
                       [] {
                           set_pid_and_count(2);
                           return inherited();
                       }),
              "unknown=3 unknown=4");
}

TEST(inherited_listeners_test, an_adopted_one_accepts) {
    auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
    const endpoint at = or_throw(listener.local_endpoint());
    const auto client = or_throw(blocking::tcp_stream::connect(at));

    EXPECT_EQ(in_child(passing(std::move(listener).release()),
                       [] {
                           set_pid_and_count(1);
                           auto found = or_throw(inherited_listeners());
                           auto adopted = or_throw(
                               nonblocking::tcp_listener::adopt(std::move(found[0].socket)));
                           return std::string{adopted.accept() ? "accepted" : "failed"};
                       }),
              "accepted");
}

struct bad_environment {
    const char* pid;
    const char* count;
    const char* names;
};

TEST(inherited_listeners_test, bad_numbers_and_names_are_errors_that_take_nothing) {
    for (const auto& [pid, count, names] : {
             bad_environment{"", "1", "a"},
             {"x", "1", "a"},
             {"-1", "1", "a"},
             {"99999999999999999999", "1", "a"},
             {nullptr, "", "a"},
             {nullptr, "x", "a"},
             {nullptr, "-1", "a"},
             {nullptr, "+1", "a"},
             {nullptr, " 1", "a"},
             {nullptr, "1 ", "a"},
             {nullptr, "01", "a"},
             {nullptr, "1.5", "a"},
             {nullptr, "2147483647", "a"},
             {nullptr, "99999999999999999999", "a"},
             {nullptr, "1", "a:b"},
             {nullptr, "1", "a:"},
             {nullptr, "2", "a"},
             {nullptr, "2", "a:b:c"},
             {nullptr, "2", ""},
         }) {
        EXPECT_EQ(in_child(passing(tcp_listening(), tcp_listening()),
                           [&] {
                               set("LISTEN_PID", pid != nullptr ? pid : std::to_string(::getpid()));
                               set("LISTEN_FDS", count);
                               set("LISTEN_FDNAMES", names);
                               const std::string first = inherited();
                               const bool untouched = is_open(3) && !is_close_on_exec(3);
                               set_pid_and_count(2);
                               set("LISTEN_FDNAMES", "b:c");
                               return first + (untouched ? ", " : "! ") + inherited();
                           }),
                  "invalid argument, b=3 c=4")
            << count << ' ' << names;
    }
}

TEST(inherited_listeners_test, a_descriptor_that_is_missing_is_an_error) {
    for (const std::size_t count : {2U, 1'000'000'000U}) {
        EXPECT_EQ(in_child(passing(tcp_listening()),
                           [&] {
                               set_pid_and_count(count);
                               const std::string first = inherited();
                               set_pid_and_count(1);
                               return first + ", " + inherited();
                           }),
                  "bad descriptor, unknown=3");
    }
}

TEST(inherited_listeners_test, a_descriptor_of_another_kind_is_an_error) {
    auto [connected, peer] = tcp_ends();
    int pipe_ends[2];
    checked(::pipe2(pipe_ends, O_CLOEXEC));
    const unique_fd other_end{pipe_ends[1]};
    unique_fd silent{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    struct {
        unique_fd fd;
        const char* error;
    } cases[] = {{unique_fd{pipe_ends[0]}, "no socket"},
                 {std::move(connected), "invalid argument"},
                 {std::move(silent), "invalid argument"}};
    for (auto& [fd, error] : cases) {
        EXPECT_EQ(in_child(passing(tcp_listening(), std::move(fd)),
                           [] {
                               set_pid_and_count(2);
                               const std::string first = inherited();
                               const bool left = is_open(3) && is_open(4) && !is_close_on_exec(3);
                               set_pid_and_count(1);
                               return first + (left ? ", " : "! ") + inherited();
                           }),
                  std::string{error} + ", unknown=3");
    }
}

#if SIMPLENET_SEAMS
/// Another thread takes the sockets, and closes them, at the first call that is seen.
class overtaking final : public detail::sys::interceptor {
    long on_call(detail::sys::pending_call& call) noexcept override {
        if (!std::exchange(done_, true)) {
            std::thread other{[] { EXPECT_TRUE(inherited_listeners()); }};
            other.join();
        }
        return call.make();
    }

    bool done_ = false;
};

TEST(inherited_listeners_test, a_call_that_is_overtaken_gets_none) {
    EXPECT_EQ(in_child(passing(tcp_listening(), tcp_listening()),
                       [] {
                           set_pid_and_count(2);
                           overtaking other;
                           const detail::sys::intercepting installed{other};
                           return inherited();
                       }),
              "none");
}
#endif

/// systemd-socket-activate(1) listens, and executes the program at the first connection.
TEST(inherited_listeners_test, systemd_passes_its_sockets) {
    const std::string activate = "/usr/bin/systemd-socket-activate";
    if (!std::filesystem::exists(activate)) GTEST_SKIP() << "without " << activate;

    const watchdog ends_a_hang;
    const temporary_directory directory;
    const std::string first = directory / "first";
    const std::string second = directory / "second";
    const child_process manager{[&] {
        const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
        ::dup2(null, STDERR_FILENO);
        ::execl(activate.c_str(), activate.c_str(), "-l", first.c_str(), "-l", second.c_str(),
                "--fdname=one:two", INHERITED_HELPER, nullptr);
        return 127;
    }};
    const auto at = or_throw(local_endpoint::parse(second));
    auto client = blocking::local_stream::connect(at);
    while (!client) { // until it listens
        std::this_thread::yield();
        client = blocking::local_stream::connect(at);
    }

    std::array<char, 64> text{};
    const auto count = or_throw(client->read_exact(std::span{text}.first(12)));
    EXPECT_EQ((std::string_view{text.data(), count}), "one=3 two=4\n");
}

} // namespace
} // namespace simplenet::v0::testing
