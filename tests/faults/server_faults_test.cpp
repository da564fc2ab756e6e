// Faults in every call and completion of servers, and in every allocation of a loop that serves
// or of run_server(): whoever was accepted is served, or learns that it is not, and the server
// ends.

#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"
#include "support/temporary_directory.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;
using testing::fault_scenario;
using testing::told;

/// A conversation with a server that echoes.
task<result<std::string>> talk(endpoint at) {
    std::string got;
    auto stream = co_await async_connect(at);
    if (!stream) co_return fail(stream);
    const auto talked = co_await testing::converse(*std::move(stream), "one two ", got);
    if (!talked) co_return fail(talked);
    co_return got;
}

class server_faults_test : public testing::fail_everywhere_test {
protected:
    void SetUp() override {
        fail_everywhere_test::SetUp();
        used = GetParam();
    }

    [[nodiscard]] static bool is_served(const endpoint& at) {
        auto tries = [&]() -> task<bool> {
            auto talking = talk(at);
            const auto talked = co_await with_timeout(std::move(talking), testing::test_limit);
            co_return talked.has_value();
        };
        return simplenet::run(tries(), {.backend = used});
    }

public:
    static inline backend used = backend::epoll; // for the scenarios
};

/// A group exists before the faults. Allocations fail on its first loop, which accepts.
class serving_play : public fault_scenario {
public:
    [[nodiscard]] bool crosses_threads() const override { return true; }
    [[nodiscard]] event_loop* failing_loop() noexcept override { return &group_[0]; }

protected:
    explicit serving_play(unsigned loops)
        : group_{or_throw(event_loop_group::create(
              {.loops = loops, .loop = {.backend = server_faults_test::used}}))} {}

    /// What the server says of its end: nobody is cut, and nobody is counted wrongly.
    static task<std::string> end(basic_server& server) {
        const shutdown_report report = co_await server.shutdown(1h);
        const server_statistics at_end = server.statistics();
        co_return told(report.cut, at_end.open, at_end.accepted - at_end.ended);
    }

    event_loop_group group_;
};

class serving_on_two_loops : public serving_play {
public:
    serving_on_two_loops()
        : serving_play{2} {}

private:
    task<result<std::string>> play() override {
        auto server = co_await or_return(tcp_server::listen(
            group_, testing::own_endpoint(),
            {.accept = accept_mode::single_acceptor, .balance = balance::round_robin}));
        co_await or_return(server.serve(testing::echo_by_read_some<tcp_stream>));
        std::string got;
        for (int clients = 0; clients < 3; ++clients) {
            auto talking = talk(server.local_endpoint());
            got += co_await or_return(co_await std::move(talking));
        }
        got += co_await end(server);
        co_return got;
    }
};
TEST_P(server_faults_test, tcp_server) {
    fail_everywhere<serving_on_two_loops>();
}

/// With a place for one connection, whose client speaks through a proxy.
class serving_behind_a_proxy : public serving_play {
public:
    serving_behind_a_proxy()
        : serving_play{1} {}

private:
    static task<result<>> name_and_echo(tcp_stream stream, connection_info info) {
        const std::string name = info.peer.to_string();
        const auto sent = co_await async_write_all(stream, name);
        if (!sent) co_return fail(sent);
        co_return co_await testing::echo_by_read_some(std::move(stream));
    }
    task<result<std::string>> play() override {
        auto server = co_await or_return(tcp_server::listen(
            group_, testing::own_endpoint(),
            {.max_connections = 1, .idle_timeout = 1h, .proxy = proxy_protocol::required}));
        co_await or_return(server.serve(name_and_echo));
        std::string got;
        for (int clients = 0; clients < 2; ++clients) {
            auto stream = co_await or_return(co_await async_connect(server.local_endpoint()));
            co_await or_return(
                co_await async_write_all(stream, "PROXY TCP4 192.0.2.1 192.0.2.2 3 4\r\n"));
            std::string name(11, '\0');
            co_await or_return(co_await async_read_exact(stream, name));
            got += name;
            co_await or_return(co_await testing::converse(std::move(stream), "one two ", got));
        }
        got += co_await end(server);
        co_return got;
    }
};
TEST_P(server_faults_test, behind_a_proxy) {
    fail_everywhere<serving_behind_a_proxy>();
}

class serving_locally : public serving_play {
public:
    serving_locally()
        : serving_play{2} {}

private:
    task<result<std::string>> play() override {
        const auto at = co_await or_return(local_endpoint::parse(path_));
        std::string got;
        {
            auto server = co_await or_return(
                local_server::listen(group_, at, {.balance = balance::round_robin}));
            co_await or_return(server.serve(testing::echo_by_read_some<local_stream>));
            for (int clients = 0; clients < 2; ++clients) {
                auto stream = co_await or_return(co_await async_connect(at));
                co_await or_return(co_await testing::converse(std::move(stream), "one two ", got));
            }
            got += co_await end(server);
        }
        co_return got;
    }
    const testing::temporary_directory directory_;
    const std::string path_ = directory_ / "server";
};
TEST_P(server_faults_test, local_server) {
    fail_everywhere<serving_locally>();
}

/// A successor takes the listeners of a server that ends.
class being_succeeded : public serving_play {
public:
    being_succeeded()
        : serving_play{1} {}

private:
    task<result<std::string>> play() override {
        auto server = co_await or_return(tcp_server::listen(group_, testing::own_endpoint()));
        co_await or_return(server.serve(testing::echo_by_read_some<tcp_stream>));
        std::vector<nonblocking::tcp_listener> taken;
        for (auto& each : co_await or_return(server.duplicate_listeners())) {
            auto adopted = nonblocking::tcp_listener::adopt(std::move(each));
            taken.push_back(co_await or_return(std::move(adopted)));
        }
        auto successor = co_await or_return(tcp_server::adopt(group_, std::move(taken)));
        co_await or_return(successor.serve(testing::echo_by_read_some<tcp_stream>));
        std::string got = co_await end(server);
        auto talking = talk(successor.local_endpoint());
        got += co_await or_return(co_await std::move(talking));
        got += co_await end(successor);
        co_return got;
    }
};
TEST_P(server_faults_test, successor) {
    fail_everywhere<being_succeeded>();
}

/// The thread that calls run_server() makes the allocations that fail.
class running_a_server : public fault_scenario {
public:
    [[nodiscard]] bool crosses_threads() const override { return true; }
    void arm(std::size_t index, bool lasts) override {
        first_failing_ = index;
        lasts_ = lasts;
    }
    std::size_t disarm() override { return seen_; }

private:
    void serve(std::stop_token stop) noexcept {
        run_server_options options;
        options.group.loops = 2;
        options.group.loop.backend = server_faults_test::used;
        options.grace = 1s; // a client that the faults reached may not be accepted
        options.context = this;
        options.on_listening = [](tcp_server& server, void* context) {
            auto& self = *static_cast<running_a_server*>(context);
            static_cast<void>(self.listening_.try_send(server.local_endpoint()));
        };
        {
            const testing::failing_allocations armed{first_failing_, lasts_};
            try {
                outcome_ =
                    run_server(testing::own_endpoint(), testing::echo_by_read_some<tcp_stream>,
                               options, std::move(stop));
            } catch (...) {
                thrown_ = std::current_exception();
            }
            seen_ = testing::failing_allocations::seen();
        }
        listening_.close();
        ended_.close();
    }
    static task<result<>> talk(endpoint at, std::string& got) {
        auto stream = co_await async_connect(at);
        if (!stream) co_return fail(stream);
        co_return co_await testing::converse(*std::move(stream), "one two ", got);
    }
    task<result<std::string>> play() override {
        std::jthread server{[this](std::stop_token stop) { serve(std::move(stop)); }};
        std::string got;
        result<> talked;
        const auto at = co_await listening_.receive();
        if (at) {
            auto talking = talk(*at, got);
            talked = co_await std::move(talking);
        }
        server.request_stop();
        const auto ended = co_await ended_.receive();
        if (ended.error() != errc::end_of_stream) co_return fail(ended);
        if (thrown_) std::rethrow_exception(thrown_);
        co_await or_return(outcome_);
        co_await or_return(talked);
        co_return got;
    }

    cross_channel<endpoint> listening_{1};
    cross_channel<char> ended_{0};
    std::size_t first_failing_ = 0;
    bool lasts_ = false;
    std::size_t seen_ = 0;
    result<shutdown_report> outcome_;
    std::exception_ptr thrown_;
};
TEST_P(server_faults_test, run_server) {
    fail_everywhere<running_a_server>();
}

/// A callbacks::server, whose handlers learn of the beginning and the end of each connection.
class serving_with_callbacks : public serving_play {
public:
    serving_with_callbacks()
        : serving_play{1} {}

private:
    /// Answers a part of four bytes with a point, and eight bytes with themselves.
    static void answer(const callbacks::connection_ptr& connection, callbacks::buffer& input) {
        if (input.readable() == 4) {
            callbacks::buffer taken{std::move(input)}; // copies what was lent, and may throw
            connection->send(".");
            input = std::move(taken); // the part stays
        }
        if (input.readable() < 8) return;
        connection->send(input);
        input.retrieve_all();
    }
    static task<result<std::string>> ask(endpoint at) {
        auto stream = co_await async_connect(at);
        if (!stream) co_return fail(stream);
        std::string got;
        for (const std::string_view part : {"one ", "two "}) {
            const auto sent = co_await async_write_all(*stream, part);
            if (!sent) co_return fail(sent);
            std::string reply(got.empty() ? 1 : 8, '\0');
            const auto count = co_await async_read_exact(*stream, reply);
            if (!count) co_return fail(count);
            got += reply;
        }
        if (const auto said = stream->shutdown_write(); !said) co_return fail(said);
        const auto read = co_await testing::read_all(*stream, got);
        if (!read) co_return fail(read);
        co_return got;
    }
    task<result<std::string>> play() override {
        callbacks::handlers handlers;
        handlers.on_connection = [this](const callbacks::connection_ptr& connection) {
            ++(connection->is_connected() ? ups_ : downs_);
        };
        handlers.on_message = answer;
        handlers.on_write_complete = [](const callbacks::connection_ptr&) {
        }; // so that it is posted
        callbacks::server server{group_, testing::own_endpoint(), std::move(handlers)};
        server.start();
        std::string got;
        std::error_code error;
        for (int clients = 0; clients < 2 && !error; ++clients) {
            auto asking = ask(server.local_endpoint());
            const auto answered = co_await std::move(asking);
            if (answered) {
                got += *answered;
            } else {
                error = answered.error();
            }
        }
        {
            const callbacks::server ends = std::move(server);
        }
        if (ups_ != downs_) co_return "a connection began or ended twice, or never";
        if (error) co_return fail(error);
        co_return got + told(ups_.load());
    }

    std::atomic<unsigned> ups_ = 0;
    std::atomic<unsigned> downs_ = 0;
};
TEST_P(server_faults_test, callbacks_server) {
    fail_everywhere<serving_with_callbacks>();
}

/// Each allocation on the loop of a server fails in turn: either the loop serves, or it reports
/// that it does not. It used to be silent if there was no memory for the task that accepts.
TEST_P(server_faults_test, a_loop_without_memory_to_begin_says_so) {
    std::size_t reports = 0;
    bool has_failed = true;
    for (std::size_t failing = 0; has_failed; ++failing) {
        auto group = or_throw(event_loop_group::create({.loops = 1, .loop = {.backend = used}}));
        std::promise<bool> lacked_memory; // outlives the server
        auto told = lacked_memory.get_future();
        server_options options{.context = &lacked_memory};
        options.on_handler_exception = [](std::exception_ptr exception, void* context) {
            bool is_bad_alloc = false;
            try {
                std::rethrow_exception(std::move(exception));
            } catch (const std::bad_alloc&) {
                is_bad_alloc = true;
            } catch (...) {
            }
            static_cast<std::promise<bool>*>(context)->set_value(is_bad_alloc);
        };
        auto server = or_throw(tcp_server::listen(group, testing::own_endpoint(), options));
        std::optional<testing::failing_allocations> armed; // on the thread of the loop
        group[0].post([&] { armed.emplace(failing, false); });

        EXPECT_TRUE(server.serve(testing::echo_by_read_some<tcp_stream>));

        // A loop that serves may lack the memory for one connection.
        const auto at = server.local_endpoint();
        if (!is_served(at) && !is_served(at)) {
            ASSERT_EQ(told.wait_for(testing::test_limit), std::future_status::ready) << failing;
            EXPECT_TRUE(told.get()) << failing;
            ++reports;
        }
        std::promise<void> disarmed;
        group[0].post([&] {
            has_failed = testing::failing_allocations::seen() > failing;
            armed.reset();
            disarmed.set_value();
        });
        disarmed.get_future().wait();
    }
    EXPECT_GE(reports, 2U);
}

INSTANTIATE_TEST_SUITE_P(backends, server_faults_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
