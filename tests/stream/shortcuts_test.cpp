// The shortcuts of async_copy() and async_send_file() through the kernel. If they are refused, or
// their resources run out, the bytes are read and written.

#include "support/backend_test.hpp"
#include "support/copy_by_splice.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/fault_parts.hpp"
#include "support/raw_peer.hpp"
#include "support/refuse_system_calls.hpp"
#if SIMPLENET_SEAMS
#include "support/fault_plan.hpp"
#endif

#include <simplenet/stream/send_file.hpp>

#include <cerrno>
#include <cstdio>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace simplenet::v0 {
namespace {

using testing::backend_name;
using testing::connect_raw;
using testing::copy_by_splice;
using testing::noise;
using testing::turns;

class shortcuts_test : public testing::backend_test {
protected:
    static constexpr std::size_t size = 2 << 20;

    /// Relays the bytes of a peer to a sink that reads slowly at first.
    void expect_all_is_copied() {
        auto [from, source] = connect_raw();
        auto [to, sink] = connect_raw();
        const std::string sent = noise(size);
        std::string got;
        std::thread sending{[&] {
            // Blocks until everything is sent, unless the copy has failed.
            static_cast<void>(::send(source.fd(), sent.data(), sent.size(), MSG_NOSIGNAL));
            ::shutdown(source.fd(), SHUT_WR);
        }};
        std::thread receiving;
        run([&]() -> task<> {
            auto copying = spawn(copy_by_splice(from, to));
            co_await turns(500);
            receiving = std::thread{[&] { got = sink.receive(size); }};
            EXPECT_EQ((co_await copying).value_or(0), size);
            from.close();
            to.close();
        });
        sending.join();
        receiving.join();
        EXPECT_TRUE(got == sent);
    }
    void expect_all_of_a_file_is_sent() {
        auto [ours, theirs] = connect_raw();
        const std::string content = noise(size);
        const auto file = testing::temporary_file(content);
        std::string got;
        std::thread receiving{[&] { got = theirs.receive(size); }};
        run([&]() -> task<> {
            const auto sent = co_await async_send_file(ours, ::fileno(file.get()), 0, size);
            EXPECT_EQ(sent.value_or(0), size);
            ours.close();
        });
        receiving.join();
        EXPECT_TRUE(got == content);
    }
};

// EPERM must end neither a copy nor the sending of a file.
TEST_P(shortcuts_test, a_sandbox_may_refuse_them) {
    if (!testing::can_refuse_system_calls()) GTEST_SKIP() << testing::no_refusals;
    const std::vector<std::vector<long>> cases{
        {SYS_splice}, {SYS_pipe2}, {SYS_sendfile}, {SYS_splice, SYS_pipe2, SYS_sendfile}};
    for (const int error : {EPERM, ENOSYS, EINVAL, EACCES}) {
        for (const auto& refused : cases) {
            still_alive(); // under a sanitizer each case takes seconds
            // Only this thread is in the sandbox, which ends with it.
            std::thread{[&] {
                ASSERT_TRUE(testing::refuse_system_calls(refused, error));
                remake_loop();
                expect_all_is_copied();
                expect_all_of_a_file_is_sent();
                destroy_loop();
            }}.join();
        }
    }
}

#if SIMPLENET_SEAMS
TEST_P(shortcuts_test, bytes_in_the_pipe_survive_a_refused_splice) {
    for (const int error : {EPERM, ENOSYS, EINVAL}) {
        testing::fault_plan plan;
        plan.fail(detail::sys::call::splice, 1, error);
        plan.shorten(detail::sys::call::splice, 3, 1000);
        plan.fail(detail::sys::call::splice, 4, error);

        expect_all_is_copied();

        EXPECT_EQ(plan.struck(), 3U);
    }
}
#endif

// A pipe for each copy would take two descriptors and up to 1 MiB of the kernel's memory.
TEST_P(shortcuts_test, copies_to_peers_that_do_not_read_hold_a_bounded_number_of_pipes) {
    constexpr std::size_t copies = 100;
    std::list<testing::raw_connection<tcp_stream>> sources;
    std::list<testing::raw_connection<tcp_stream>> sinks;
    for (std::size_t each = 0; each < copies; ++each) {
        sources.push_back(connect_raw());
        sinks.push_back(connect_raw(testing::small_buffers));
    }
    run([&]() -> task<> {
        const std::size_t before = testing::open_descriptors();
        std::vector<join_handle<transfer_result>> copying;
        for (auto from = sources.begin(), to = sinks.begin(); from != sources.end(); ++from, ++to) {
            from->theirs.send_until_full(noise(60'000));
            copying.push_back(spawn(copy_by_splice(from->ours, to->ours)));
        }
        co_await turns(50);
        EXPECT_GT(testing::open_descriptors(), before + 10);
        EXPECT_LE(testing::open_descriptors(), before + 2 * detail::copy_pipe::most);
        for (auto& each : copying)
            each.request_stop();
        for (auto& each : copying)
            static_cast<void>(co_await each);
        EXPECT_LE(testing::open_descriptors(), before + 2); // the spare one
    });
    expect_all_is_copied();
}

INSTANTIATE_TEST_SUITE_P(backends, shortcuts_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
