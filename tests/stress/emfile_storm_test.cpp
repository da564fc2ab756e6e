// More connections than descriptors, again and again: the loop does not spin, connected clients are
// still served, and every client is accepted in the end.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"
#include "support/full_form.hpp"
#include "support/processor_time.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::checked;
using testing::short_or_full;
using testing::until;

class emfile_storm_test : public testing::backend_test {
protected:
    /// Called while there are still descriptors.
    static std::vector<testing::raw_peer> make_clients(std::size_t count) {
        std::vector<testing::raw_peer> clients;
        for (std::size_t each = 0; each < count; ++each)
            clients.emplace_back(unique_fd{checked(::socket(AF_INET, SOCK_STREAM, 0))});
        return clients;
    }
    static void connect(const std::vector<testing::raw_peer>& clients, const endpoint& to) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(to.port());
        for (const auto& each : clients)
            checked(::connect(each.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address));
    }

    static task<> echo(tcp_stream stream) {
        while (auto bytes = co_await stream.receive()) {
            const auto sent = co_await async_write_all(stream, *bytes);
            if (!sent) break;
        }
    }

    /// Echoes to every client.
    static task<> serve(tcp_listener& listener, std::size_t& accepted, task_group& clients) {
        for (;;) {
            auto stream = co_await listener.accept();
            if (!stream) co_return;
            ++accepted;
            clients.spawn(echo(*std::move(stream)));
        }
    }

    static task<bool> is_served(testing::raw_peer& client) {
        client.send("ping");
        while (client.peek() < 0)
            co_await yield();
        co_return client.receive(4) == "ping";
    }
};

TEST_P(emfile_storm_test, accepting_resumes_and_no_client_starves) {
    const std::size_t all = short_or_full<std::size_t>(40, 200);
    const std::size_t at_once = all / 4; // for these there are descriptors
    const int storms = short_or_full(2, 20);
    const auto quiet = short_or_full<std::chrono::milliseconds>(60ms, 2s);
    std::size_t served = 0;
    std::chrono::nanoseconds longest{};
    std::chrono::nanoseconds used{};
    std::uint64_t most_turns = 0;
    std::uint64_t pauses = 0;

    run(
        [&]() -> task<> {
            const std::size_t before = testing::open_descriptors();
            for (int storm = 0; storm < storms; ++storm) {
                still_alive();
                // io_uring closes a descriptor only when the kernel is done with it: none may come
                // back during a shortage.
                co_await until([&] { return testing::open_descriptors() == before; });
                // A new listener each time: an accept in the kernel uses the limit in force at its
                // start.
                auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
                const endpoint at = or_throw(listener.local_endpoint());
                auto clients = make_clients(all);
                std::size_t accepted = 0;
                task_group connections;
                testing::descriptor_limit limit{static_cast<int>(at_once)};
                auto serving = spawn(serve(listener, accepted, connections));
                connect(clients, at);
                co_await until([&] { return accepted == at_once; });

                // Without descriptors, nothing moves, and waiting costs nothing.
                co_await testing::turns(20);
                const auto turns_before = loop().metrics().turns;
                const auto used_before = testing::processor_time();
                static_cast<void>(co_await async_sleep(quiet));
                most_turns = std::max(most_turns, loop().metrics().turns - turns_before);
                used += testing::processor_time() - used_before;
                EXPECT_EQ(accepted, at_once);
                for (std::size_t each = 0; each < at_once; ++each)
                    served += co_await is_served(clients[each]);

                // Whenever a client leaves, the next one is accepted.
                for (std::size_t each = 0; each < at_once; ++each)
                    clients[each].shutdown_write();
                co_await until([&] { return accepted == 2 * at_once; });

                // Descriptors become available, and the loop is not told.
                limit.lift();
                const auto since = std::chrono::steady_clock::now();
                co_await until([&] { return accepted > 2 * at_once; });
                longest = std::max<std::chrono::nanoseconds>(
                    longest, std::chrono::steady_clock::now() - since);
                co_await until([&] { return accepted == all; });
                for (std::size_t each = 2 * at_once; each < all; ++each)
                    served += co_await is_served(clients[each]);

                serving.request_stop();
                co_await serving;
                connections.request_stop();
                static_cast<void>(co_await connections.join());
            }
            pauses = loop().metrics().accept_pauses;
        },
        testing::test_limit +
            std::chrono::duration_cast<std::chrono::seconds>(storms * (quiet + 3s)));

    EXPECT_EQ(served, static_cast<std::size_t>(storms) * (all - at_once));
    EXPECT_GE(pauses, static_cast<std::uint64_t>(storms)) << "the shortage was not counted";
    EXPECT_LT(most_turns, 200U) << "the loop spins";
    if (testing::full_form()) { // on an otherwise idle machine
        EXPECT_LT(longest, 1s * testing::patience) << "accepting resumed late";
        EXPECT_LT(used * 50, storms * quiet) << "more than 2 % of a processor";
    }
    const auto ms = [](std::chrono::nanoseconds time) {
        return std::to_string(std::chrono::duration<double, std::milli>(time).count());
    };
    testing::report_figures(std::to_string(storms) + " storms of " + std::to_string(all) +
                            " connections, " + std::to_string(pauses) +
                            " pauses, resumed after at most " + ms(longest) + " ms, " + ms(used) +
                            " ms of processor in " + ms(storms * quiet) + " ms of shortage");
}

INSTANTIATE_TEST_SUITE_P(backends, emfile_storm_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
