// Faults in every call when a resource is used up already: buffers, room in a socket, descriptors,
// entries of a ring, connections that are accepted ahead.

#include "support/descriptor_limit.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::fault_scenario;
using testing::make_connection;
using testing::told;

class limit_faults_test : public testing::fail_everywhere_test {};

/// Two buffers for three streams.
class more_leases_than_buffers : public fault_scenario {
    static task<result<received>> take(tcp_stream& stream) { co_return co_await stream.receive(); }
    static task<result<>> let_go(std::vector<received>& leases) {
        for (int turns = 3; turns > 0; --turns)
            co_await yield();
        leases.clear();
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        std::vector<testing::connection> ends;
        std::vector<received> leases;
        for (int each = 0; each < 3; ++each) {
            ends.push_back(co_await or_return(co_await make_connection()));
            co_await or_return(co_await async_write_all(ends.back().client, "word"));
            if (each < 2)
                leases.push_back(co_await or_return(co_await ends[each].server.receive()));
        }
        auto [last, done] =
            co_await or_return(co_await gather(take(ends[2].server), let_go(leases)));
        co_return std::string{last.text()};
    }
};
TEST_P(limit_faults_test, leases_beyond_two_buffers) {
    fail_everywhere<more_leases_than_buffers>({.receive_pool = 1});
}

/// The kernel cannot open the arriving descriptors, or the caller does not want them.
class refusing_descriptors : public fault_scenario {
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        const std::array<int, 1> own{ours.native_handle()};
        std::array<std::byte, 8> bytes{};
        co_await or_return(co_await ours.send_descriptors("x", own));
        std::optional<testing::descriptor_limit> none;
        {
            const testing::exempt_allocations always;
            none.emplace();
        }
        auto came = co_await theirs.receive_descriptors(bytes, 4);
        none.reset();
        if (came || came.error().transferred == 0) co_return testing::failed_otherwise(came);
        const auto full = came.error().code;
        co_await or_return(co_await ours.send_descriptors("x", own));
        came = co_await theirs.receive_descriptors(bytes, 0);
        if (came || came.error().transferred == 0) co_return testing::failed_otherwise(came);
        co_return told(full == std::errc::too_many_files_open,
                       came.error().code == errc::limit_exceeded);
    }
};
TEST_P(limit_faults_test, refused_descriptors) {
    fail_everywhere<refusing_descriptors>();
}

/// More bytes than a socket holds, to a peer that reads late.
class filling_a_socket : public fault_scenario {
protected:
    static constexpr std::size_t size = 40'000;

private:
    virtual task<result<>> send(local_stream stream) = 0;

    task<result<>> receive(local_stream& stream) {
        for (int turns = 5; turns > 0; --turns)
            co_await yield();
        co_return co_await testing::read_all(stream, got_);
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await or_return(ours.set_send_buffer(4096));
        co_await or_return(co_await gather(send(std::move(ours)), receive(theirs)));
        co_return told(got_.size());
    }
    std::string got_;
};

class filling_it_with_a_file : public filling_a_socket {
    task<result<>> send(local_stream stream) override {
        const auto sent = co_await async_send_file(stream, ::fileno(file_.get()), 0, size);
        if (!sent) co_return fail(sent);
        co_return stream.shutdown_write();
    }
    testing::owned_file file_ = testing::temporary_file(std::string(size, 'x'));
};
TEST_P(limit_faults_test, file_into_a_full_socket) {
    fail_everywhere<filling_it_with_a_file>();
}

/// With both kinds of writes, which wait for room.
class filling_it_in_parts : public filling_a_socket {
    task<result<>> send(local_stream stream) override {
        const std::string text(size, 'x');
        for (const_buffer rest{text}; !rest.empty();) {
            const auto sent = co_await stream.write_some(rest);
            if (!sent) co_return fail(sent);
            rest = rest.subspan(*sent);
        }
        if (auto sent = co_await async_write_all(stream, text); !sent) co_return fail(sent);
        co_return stream.shutdown_write();
    }
};
TEST_P(limit_faults_test, writes_into_a_full_socket) {
    fail_everywhere<filling_it_in_parts>();
}

/// More connections at once than the loop accepts ahead intentionally.
class accepting_far_ahead : public fault_scenario {
    static constexpr std::size_t count = 80;

    bool knock(const endpoint& at) {
        clients_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const linger reset{.l_onoff = 1, .l_linger = 0}; // otherwise they would occupy all ports
        ::setsockopt(clients_.back().get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(at.port());
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return ::connect(clients_.back().get(), reinterpret_cast<const sockaddr*>(&to),
                         sizeof to) == 0;
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        clients_.reserve(count);
        std::size_t accepted = 0;
        for (const std::size_t wanted : {std::size_t{1}, count}) {
            while (clients_.size() < wanted) {
                if (!knock(at)) co_return fail(std::errc::io_error);
            }
            for (int turns = 3; turns > 0; --turns)
                co_await yield();
            for (; accepted < wanted; ++accepted) {
                const auto peer = co_await with_timeout(listener.accept(), 100ms);
                // One of them was dropped, and its client has noticed.
                if (!peer && peer.error() == errc::deadline_exceeded)
                    co_return fail(std::errc::connection_aborted);
                if (!peer) co_return fail(peer);
            }
        }
        co_return told(accepted);
    }
    std::vector<unique_fd> clients_;
};
TEST_P(limit_faults_test, accepting_ahead) {
    fail_everywhere<accepting_far_ahead>();
}

/// More operations at once than the ring has entries, before the loop has entered the kernel.
class filling_the_ring : public fault_scenario {
    static task<result<std::size_t>> read(local_stream& stream) {
        std::array<std::byte, 8> bytes{};
        co_return co_await stream.read_some(bytes);
    }
    task<result<std::string>> play() override {
        std::vector<std::pair<local_stream, local_stream>> pairs;
        for (int left = 50; left > 0; --left) {
            pairs.push_back(co_await or_return(local_stream::pair()));
            const int fd = pairs.back().first.native_handle();
            if (::send(fd, "word", 4, MSG_NOSIGNAL) != 4) co_return fail(std::errc::io_error);
        }
        std::vector<task<result<std::size_t>>> reading;
        for (auto& [ours, theirs] : pairs)
            reading.push_back(read(theirs));
        std::size_t total = 0;
        for (const auto& count : co_await when_all(std::move(reading)))
            total += co_await or_return(count);
        co_return told(total);
    }
};
TEST_P(limit_faults_test, full_ring) {
    fail_everywhere<filling_the_ring>({.queue_depth = 8});
}

TEST_P(limit_faults_test, a_kernel_that_demands_reaping_first_loses_no_completion) {
    for (const unsigned at : {1U, 2U, 3U, 4U}) {
        auto loop = or_throw(event_loop::create({.backend = GetParam(), .queue_depth = 8}));
        testing::fault_plan plan;
        plan.fail(testing::call::uring_enter, at, EBUSY);
        filling_the_ring scene;
        auto body = [](fault_scenario& played) -> task<> {
            EXPECT_EQ(co_await played.play(), "200 ");
        };
        loop.spawn(body(scene));
        EXPECT_TRUE(loop.run_for(5s * testing::patience));
    }
}

// The loop could not continue: operations whose completions are lost would never end.
TEST_P(limit_faults_test, a_kernel_that_lost_completions_stops_the_program_with_the_cause) {
    if (GetParam() != backend::io_uring) return; // epoll has no completions
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto lose_one = [] {
        auto loop = or_throw(event_loop::create({.backend = GetParam()}));
        testing::fault_plan plan;
        plan.fail(testing::call::uring_enter, 1, EBADR);
        filling_the_ring scene;
        auto body = [](fault_scenario& played) -> task<> {
            static_cast<void>(co_await played.play());
        };
        loop.spawn(body(scene));
        loop.run();
    };
    EXPECT_DEATH(lose_one(), "the kernel had no memory for completions .*completion_depth");
}

INSTANTIATE_TEST_SUITE_P(backends, limit_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
