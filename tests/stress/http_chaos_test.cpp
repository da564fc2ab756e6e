// Clients ask an HTTP server for everything that it can answer: pipelined, in pieces, malformed, by
// connections that are slow, end early or are reset; handlers are stopped, fail and give their
// connection away; routes are replaced, and servers shut down. Each answer carries the number of
// its request: none may be mixed up, out of order, or look complete when it is not, and none may
// follow a request that was refused. Where nobody misbehaves, none may be missing.
//
// Some servers compress, some end a connection after a few requests or a short time, and some give
// their clients next to no time: those may answer 408, or cut.
//
// SIMPLENET_ANSWERS=<n>: so many answers in each test. A failure prints a seed;
// SIMPLENET_SEED=<seed> starts with that one. The servers and clients are on threads of their own,
// so their order is not quite the same.

#include "stress/http_asking.hpp"
#include "stress/http_plan.hpp"
#include "stress/http_routes.hpp"
#if SIMPLENET_HAS_TLS
#include "tls/tls_pair.hpp"
#endif

#include "support/backend_test.hpp"
#include "support/full_form.hpp"
#include "support/random_stop.hpp"
#include "support/raw_peer.hpp"
#include "support/resources.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>
#if SIMPLENET_HAS_TLS
#include <simplenet/tls.hpp>
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::misbehaviour;
using testing::planned_request;
using testing::round_of_http;

class http_chaos_test : public testing::backend_test {
protected:
    /// `dress` makes the stream of a client from a connection.
    template <class Stream, class Dress>
    void rage(std::uint64_t in_short, std::uint64_t in_full, const tls::context* with,
              Dress dress) {
        const std::uint64_t enough = testing::number_from_environment("SIMPLENET_ANSWERS")
                                         .value_or(testing::short_or_full(in_short, in_full));
        const std::uint64_t first = testing::first_seed();
        std::uint64_t seed = first;
        const auto content = std::make_shared<testing::served_content>();
        round_of_http sum;
        std::uint64_t stops = 0;
        for (; sum.answers < enough && !HasFailure(); ++seed) {
            const ::testing::ScopedTrace trace{
                __FILE__, __LINE__, "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
            still_alive();
            round_of_http round;
            play_round<Stream>(round, seed, content, with, dress);
            if (IsSkipped()) return;
            sum.answers += round.answers;
            sum.refused += round.refused;
            sum.broken += round.broken;
            sum.resets += round.resets;
            stops += round.is_stopping ? 1 : 0;
        }
        if (HasFailure()) return;
        if (sum.answers >= in_short) {
            EXPECT_GT(sum.refused, 0U);
            EXPECT_GT(sum.broken, 0U);
            EXPECT_GT(sum.resets, 0U);
        }
        testing::report_figures(std::to_string(sum.answers) + " answers, " +
                                std::to_string(sum.refused) + " of them refusals or errors, " +
                                std::to_string(sum.broken) + " cut, " + std::to_string(sum.resets) +
                                " resets, " + std::to_string(stops) + " shutdowns, seeds " +
                                std::to_string(first) + " to " + std::to_string(seed - 1));
    }

private:
    template <class Stream, class Dress>
    void play_round(round_of_http& round, std::uint64_t seed,
                    const std::shared_ptr<testing::served_content>& content,
                    const tls::context* with, Dress& dress) {
        testing::decisions random{seed};
        remake_loop();
        if (IsSkipped()) return;
        {
            http::server_options options{.tls = with};
            choose_limits(round, random, options);
            content->is_strict = round.is_strict;
            options.server.accept = random.one_of(
                {accept_mode::automatic, accept_mode::reuse_port, accept_mode::single_acceptor});
            options.server.on_handler_exception = [](std::exception_ptr, void*) {};
            auto group = make_group(random);
            auto server = or_throw(http::server::listen(
                group, endpoint::loopback(0), testing::chaos_routes(content, 0), options));
            loop().spawn(conduct<Stream>(round, random, group, server, content, with, dress));
            if (!loop().run_for(40s)) {
                ADD_FAILURE() << "it hangs";
                loop().dump_tasks(std::cerr);
            }
            destroy_loop();
        }
    }
    static void choose_limits(round_of_http& round, testing::decisions& random,
                              http::server_options& options) {
        static constexpr std::string_view text[]{"text/plain"};
        const auto soon = [&] { return std::chrono::milliseconds{1 + random.up_to(20)}; };
        round.compresses = random.percent(40);
        if (round.compresses) {
            options.compression = {.types = text,
                                   .minimum = random.one_of<std::size_t>({1, 1024}),
                                   .level = 1 + static_cast<int>(random.up_to(5))};
        }
        round.is_tired = random.percent(20);
        if (round.is_tired) {
            options.limits.requests_per_connection = static_cast<unsigned>(random.up_to(20));
            options.limits.keep_alive = soon();
        }
        round.is_strict = random.percent(15);
        if (!round.is_strict) return;
        const auto perhaps = [&](std::chrono::nanoseconds& limit) {
            if (random.percent(50)) limit = soon();
        };
        perhaps(options.limits.headers_within);
        perhaps(options.limits.body_idle);
        perhaps(options.limits.keep_alive);
        perhaps(options.limits.send_idle);
        perhaps(options.limits.linger);
        perhaps(options.limits.linger_idle);
    }
    event_loop_group make_group(testing::decisions& random) {
        loop_options options;
        options.backend = GetParam();
        options.read_ahead = random.one_of<std::size_t>({1, 4096, 64 * 1024});
        if (random.percent(40)) options.receive_pool = 1; // two buffers
        const unsigned loops = 1 + static_cast<unsigned>(random.up_to(1));
        return or_throw(event_loop_group::create({.loops = loops, .loop = options}));
    }

    template <class Stream, class Dress>
    task<> conduct(round_of_http& round, testing::decisions& random, event_loop_group& group,
                   http::server& server, std::shared_ptr<testing::served_content> content,
                   const tls::context* with, Dress& dress) {
        task_group watching;
        watching.spawn(watch(group));
        task_group clients;
        const std::size_t count = 1 + random.up_to(15);
        for (std::size_t each = 0; each < count; ++each)
            clients.spawn(ask<Stream>(round, random.up_to(SIZE_MAX - 1), server.local_endpoint(),
                                      each, dress));
        clients.spawn(meddle(round, random, server, std::move(content), with));
        co_await clients.join();

        const shutdown_report report = co_await server.shutdown(20s);
        watching.request_stop();
        co_await watching.join();
        const http::server_statistics end = server.statistics();
        EXPECT_EQ(end.open, 0U);
        EXPECT_EQ(end.ended, end.accepted);
        EXPECT_GE(end.requests + round.refused, round.answers);
        if (!round.is_cut) {
            EXPECT_EQ(report.cut, 0U);
        }
    }

    /// What still waits after so long probably hangs.
    task<> watch(event_loop_group& group) {
        const result<> waited = co_await async_sleep(15s);
        if (!waited) co_return;
        loop().dump_tasks(std::cerr);
        group.dump_tasks(std::cerr);
    }

    /// One connection after the other.
    template <class Stream, class Dress>
    static task<> ask(round_of_http& round, std::uint64_t seed, endpoint at, std::size_t client,
                      Dress& dress) {
        testing::decisions random{seed};
        const std::size_t connections = random.one_of<std::size_t>({1, 3, 12});
        for (std::size_t each = 0; each < connections && !round.is_stopping; ++each) {
            const auto misbehaves = choose_misbehaviour(random);
            auto plan = make_plan(random, (client + 1) * 1'000'000 + each * 1'000);
            auto connecting = async_connect(at);
            auto made = co_await std::move(connecting);
            if (!made) {
                EXPECT_TRUE(round.is_stopping) << made.error().message();
                co_return;
            }
            static_cast<void>(made->set_no_delay(true)); // small pieces would wait for others
            if (random.percent(30)) testing::set_buffers(made->native_handle(), 32 * 1024);
            testing::asking_client<Stream> asks{round, dress(*std::move(made)),
                                                random.up_to(SIZE_MAX - 1), std::move(plan),
                                                misbehaves};
            co_await asks.run();
        }
    }
    static std::vector<planned_request> make_plan(testing::decisions& random, std::uint64_t first) {
        std::vector<planned_request> plan;
        const testing::request_mix mix{.malformed = random.percent(30),
                                       .breaking = random.percent(35)};
        testing::request_planner planner{random, mix};
        std::size_t left = 1 + random.up_to(random.one_of<std::size_t>({2, 20, 60}));
        bool is_last = false;
        for (; left != 0; --left) {
            plan.push_back(planner.next(first + plan.size()));
            if (plan.back().upgrades || plan.back().is_last) break;
            // What follows on the same connection must not be answered.
            if (plan.back().closes == planned_request::ends::yes && !std::exchange(is_last, true)) {
                left = std::min<std::size_t>(left, 3);
            }
        }
        return plan;
    }
    static misbehaviour choose_misbehaviour(testing::decisions& random) {
        using kind = misbehaviour::kind;
        if (random.percent(60)) return {};
        misbehaviour chosen{.is = random.one_of({kind::resets, kind::closes, kind::stops_reading,
                                                 kind::ends_early})};
        const std::size_t after = random.size(200'000);
        if (random.percent(50) || chosen.is == kind::ends_early) {
            chosen.after_sent = after;
        } else {
            chosen.after_received = after;
        }
        return chosen;
    }

    /// Replaces the routes, and perhaps ends the server.
    static task<> meddle(round_of_http& round, testing::decisions& random, http::server& server,
                         std::shared_ptr<testing::served_content> content,
                         const tls::context* with) {
        std::uint64_t version = 0;
        for (std::size_t left = random.up_to(10); left != 0; --left) {
            static_cast<void>(co_await async_sleep(random.moment()));
            const tls::context* const other = random.percent(50) ? with : nullptr;
            EXPECT_TRUE(server.replace(testing::chaos_routes(content, ++version), other));
        }
        if (!random.percent(30)) co_return;
        static_cast<void>(co_await async_sleep(std::chrono::milliseconds{random.up_to(20)}));
        round.is_cut = random.percent(50);
        round.is_stopping = true;
        server.request_shutdown(round.is_cut ? std::chrono::milliseconds{random.up_to(5)} : 30s);
    }
};

TEST_P(http_chaos_test, over_tcp) {
    rage<tcp_stream>(1'000, 1'000'000, nullptr, [](tcp_stream stream) { return stream; });
}

#if SIMPLENET_HAS_TLS
TEST_P(http_chaos_test, over_tls) {
    const tls::context server = testing::server_with();
    const tls::context client = testing::client();
    rage<tls::stream<tcp_stream>>(500, 200'000, &server, [&](tcp_stream stream) {
        return tls::stream<tcp_stream>{std::move(stream), client, {.server_name = "localhost"}};
    });
}
#endif

INSTANTIATE_TEST_SUITE_P(backends, http_chaos_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
