// Servers that shut down while clients ask, again and again: everybody who was accepted gets the
// whole answer, and nobody has to be cut.

#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/served_group.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// A client sends requests; the server answers each with its content. A server that shuts down says
// goodbye between two answers; a client that was told sends nothing more, gets what it has asked
// for, and leaves.

struct content_request {
    std::uint64_t seed;
    std::uint32_t size;    // of the answer's content
    std::uint32_t is_only; // the connection ends with the answer
};

constexpr std::byte answer_follows{'a'};
constexpr std::byte goodbye{'g'};
constexpr std::uint32_t largest_answer = 40'000;

template <class Stream>
task<> answer_until_stop(Stream stream) {
    std::vector<std::byte> reply;
    bool is_stopping = false;
    for (;;) {
        if (!is_stopping) {
            const auto next = co_await when_any(stream.readable(), server_stop());
            is_stopping = next.index == 1;
            if (is_stopping) {
                const auto told = co_await async_write_all(stream, std::span{&goodbye, 1});
                if (!told) co_return;
            }
        }
        content_request asked{};
        const auto read =
            co_await async_read_exact(stream, std::as_writable_bytes(std::span{&asked, 1}));
        if (!read) co_return;
        reply.resize(1 + asked.size);
        reply[0] = answer_follows;
        testing::placed_bytes{asked.seed}.fill(0, std::span{reply}.subspan(1));
        const auto sent = co_await async_write_all(stream, reply);
        if (!sent || asked.is_only != 0) co_return;
    }
}

/// What became of the connections of all clients.
struct outcomes {
    std::atomic<std::size_t> served = 0;   // to their end, with every answer
    std::atomic<std::size_t> unserved = 0; // ended without a byte of an answer
    std::atomic<std::size_t> broken = 0;   // every other end
    std::atomic<std::size_t> answers = 0;
};

using server_address = std::variant<endpoint, local_endpoint>;

/// Blocking, and without the library but for the address.
class asking_client {
public:
    asking_client(server_address at, bool stays, std::uint64_t seed, outcomes& counts)
        : at_{std::move(at)}
        , stays_{stays}
        , random_{seed}
        , counts_{counts} {}

    void run(const std::atomic<bool>& over) {
        while (!over) {
            unique_fd socket = connect();
            if (!socket) {
                // The server has closed its listener: leave the processor to its other clients
                // until the test ends this one.
                std::this_thread::sleep_for(1ms);
                continue;
            }
            testing::raw_peer peer{std::move(socket)};
            has_answer_ = false;
            if (is_served(peer)) {
                ++counts_.served;
            } else {
                ++(has_answer_ ? counts_.broken : counts_.unserved);
            }
        }
    }

private:
    [[nodiscard]] unique_fd connect() const {
        if (const auto* const tcp = std::get_if<endpoint>(&at_)) {
            auto made = blocking::tcp_stream::connect(*tcp);
            return made ? std::move(*made).release() : unique_fd{};
        }
        auto made = blocking::local_stream::connect(std::get<local_endpoint>(at_));
        return made ? std::move(*made).release() : unique_fd{};
    }

    /// One request, or many until the server says goodbye.
    [[nodiscard]] bool is_served(testing::raw_peer& peer) {
        bool told = false;
        do {
            const content_request asked{.seed = random_(),
                                        .size =
                                            static_cast<std::uint32_t>(random_() % largest_answer),
                                        .is_only = stays_ ? 0U : 1U};
            if (!send(peer, asked) || !receive_answer(peer, asked, told)) return false;
        } while (stays_ && !told);
        if (stays_) peer.shutdown_write();
        return ends(peer, told);
    }
    [[nodiscard]] static bool send(const testing::raw_peer& peer, const content_request& asked) {
        return ::send(peer.fd(), &asked, sizeof asked, MSG_NOSIGNAL) == sizeof asked;
    }
    [[nodiscard]] bool receive_answer(testing::raw_peer& peer, const content_request& asked,
                                      bool& told) {
        std::string kind = peer.receive(1);
        if (kind == "g") {
            told = has_answer_ = true;
            kind = peer.receive(1);
        }
        if (kind != "a") return false;
        has_answer_ = true;
        const std::string content = peer.receive(asked.size);
        if (content.size() != asked.size) return false;
        const auto mistake =
            testing::placed_bytes{asked.seed}.mistake(0, std::as_bytes(std::span{content}));
        EXPECT_FALSE(mistake) << *mistake;
        ++counts_.answers;
        return !mistake;
    }
    /// Nothing more comes, but for a goodbye that was not told yet.
    [[nodiscard]] static bool ends(testing::raw_peer& peer, bool told) {
        std::array<char, 2> more{};
        std::size_t have = 0;
        for (;;) {
            const ssize_t count = testing::restarted(
                [&] { return ::recv(peer.fd(), more.data() + have, more.size() - have, 0); });
            if (count < 0) return false;
            if (count == 0) return have == 0 || (have == 1 && more[0] == 'g' && !told);
            have += static_cast<std::size_t>(count);
            if (have == more.size()) return false;
        }
    }

    const server_address at_;
    const bool stays_;
    std::mt19937_64 random_;
    outcomes& counts_;
    bool has_answer_ = false;
};

/// Clients on threads of their own, from construction to end().
class asking_clients {
public:
    asking_clients(const server_address& at, std::uint64_t seed) {
        constexpr std::size_t threads = 8;
        for (std::size_t each = 0; each < threads; ++each) {
            threads_.emplace_back([this, &at, each, seed] {
                asking_client{at, each % 2 == 0, seed * threads + each, counts}.run(over_);
            });
        }
    }
    asking_clients(const asking_clients&) = delete;
    asking_clients& operator=(const asking_clients&) = delete;
    ~asking_clients() { end(); }

    void end() {
        over_ = true;
        for (auto& each : threads_) {
            if (each.joinable()) each.join();
        }
    }

    outcomes counts;

private:
    std::atomic<bool> over_ = false;
    std::vector<std::thread> threads_;
};

class graceful_stops_test : public testing::served_test {
protected:
    struct totals {
        std::size_t connections = 0;
        std::size_t answers = 0;
        std::size_t unserved = 0;
        steady_clock::duration longest{};
    };

    /// `listen()` returns a server that serves.
    template <class Listen>
    void stop_again_and_again(Listen listen) {
        const std::uint64_t first = testing::first_seed();
        const std::uint64_t stops = testing::short_or_full<std::uint64_t>(3, 100);
        totals sum;
        for (std::uint64_t seed = first; seed < first + stops && !HasFailure(); ++seed) {
            SCOPED_TRACE("to reproduce: SIMPLENET_SEED=" + std::to_string(seed));
            testing::watchdog::restart();
            auto server = listen();
            stop_once(server, seed, sum);
        }
        using milliseconds = std::chrono::duration<double, std::milli>;
        testing::report_figures(
            std::to_string(stops) + " stops, " + std::to_string(sum.connections) +
            " connections with " + std::to_string(sum.answers) + " answers, none lost; " +
            std::to_string(sum.unserved) + " came between the last accept and the close; longest " +
            std::to_string(milliseconds{sum.longest}.count()) + " ms; seeds from " +
            std::to_string(first));
    }

private:
    template <class Server>
    static void stop_once(Server& server, std::uint64_t seed, totals& sum) {
        const server_address at{server.local_endpoint()};
        asking_clients clients{at, seed};
        EXPECT_TRUE(eventually([&] { return clients.counts.answers >= 50 + seed % 50; }));

        const auto before = steady_clock::now();
        if (seed % 2 == 0) server.request_shutdown(1h); // the second one changes nothing
        const shutdown_report report = shut_down(server, 30s * testing::patience);
        sum.longest = std::max(sum.longest, steady_clock::now() - before);
        clients.end();

        const server_statistics end = server.statistics();
        EXPECT_EQ(report.cut, 0U);
        EXPECT_EQ(end.open, 0U);
        EXPECT_EQ(end.failed, 0U);
        EXPECT_EQ(end.ended, end.accepted);
        EXPECT_EQ(clients.counts.broken, 0U);
        EXPECT_EQ(clients.counts.served, end.accepted);
        sum.connections += end.accepted;
        sum.answers += clients.counts.answers;
        sum.unserved += clients.counts.unserved;
    }
};

TEST_P(graceful_stops_test, of_a_server_with_a_listener_for_each_loop) {
    auto group = make_group(2);
    stop_again_and_again([&] {
        auto server = or_throw(
            tcp_server::listen(group, endpoint::loopback(0), {.accept = accept_mode::reuse_port}));
        EXPECT_TRUE(server.serve(answer_until_stop<tcp_stream>));
        return server;
    });
}

TEST_P(graceful_stops_test, of_a_server_with_one_listener) {
    auto group = make_group(2);
    stop_again_and_again([&] {
        auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0),
                                                  {.accept = accept_mode::single_acceptor}));
        EXPECT_TRUE(server.serve(answer_until_stop<tcp_stream>));
        return server;
    });
}

TEST_P(graceful_stops_test, of_a_server_with_few_places) {
    auto group = make_group(2);
    stop_again_and_again([&] {
        auto server =
            or_throw(tcp_server::listen(group, endpoint::loopback(0), {.max_connections = 5}));
        EXPECT_TRUE(server.serve(answer_until_stop<tcp_stream>));
        return server;
    });
}

TEST_P(graceful_stops_test, of_a_local_server) {
    const testing::temporary_directory directory;
    const auto at = or_throw(local_endpoint::parse(directory / "server"));
    auto group = make_group(2);
    stop_again_and_again([&] {
        auto server = or_throw(local_server::listen(group, at));
        EXPECT_TRUE(server.serve(answer_until_stop<local_stream>));
        return server;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, graceful_stops_test, testing::real_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
