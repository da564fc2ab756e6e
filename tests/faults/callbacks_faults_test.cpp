// Faults in every call, completion and allocation of a callbacks::client: it connects again, or the
// caller of connect() learns that it does not.

#include "support/closed_port.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/testing/manual_clock.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using callbacks::connection_ptr;
using testing::backend_name;
using testing::fault_scenario;

class callbacks_faults_test : public testing::fail_everywhere_test {
protected:
    void SetUp() override {
        fail_everywhere_test::SetUp();
        used = GetParam();
    }

public:
    static inline backend used = backend::epoll; // for the scenarios
    static void ignore(std::exception_ptr) {}    // a handler throws when it lacks memory
};

/// A client asks a server, which echoes to one connection after the other.
class asking_by_callbacks : public fault_scenario {
protected:
    /// An answer has arrived, in one connection.
    virtual void answered() = 0;
    /// Connects the client, and ends it after the answer.
    virtual task<result<>> ask(callbacks::client& client) = 0;
    virtual event_loop& client_loop() = 0;
    virtual void went_down() {}

private:
    static task<result<>> serve(tcp_listener& listener) {
        for (;;) {
            auto stream = co_await listener.accept();
            if (!stream) co_return fail(stream);
            static_cast<void>(co_await testing::echo_by_read_some(*std::move(stream)));
        }
    }
    callbacks::handlers handlers() {
        callbacks::handlers made;
        made.on_connection = [this](const connection_ptr& connection) {
            ++(connection->is_connected() ? ups_ : downs_);
            if (connection->is_connected()) return connection->send("one two ");
            went_down();
        };
        made.on_message = [this](const connection_ptr&, callbacks::buffer& input) {
            if (input.readable() < 8) return;
            if (input.retrieve_all_as_string() == "one two ") answered();
        };
        made.on_write_complete = [](const connection_ptr&) {}; // so that it is posted
        return made;
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        {
            callbacks::client client{client_loop(), "127.0.0.1", at.port(), handlers(),
                                     client_options{.backoff = {.initial = 50us, .maximum = 1ms}}};
            const auto first = co_await when_any(serve(listener), ask(client));
            if (first.index == 0) co_return fail(*std::get<0>(first.values));
            co_await or_return(*std::get<1>(first.values));
        }
        co_return ups_ == downs_ ? "answered" : "a connection began or ended twice, or never";
    }

    std::atomic<unsigned> ups_ = 0;
    std::atomic<unsigned> downs_ = 0;
};

class asking_on_this_loop : public asking_by_callbacks {
    void answered() override { has_answer_.set(); }
    void went_down() override { is_down_.set(); }
    event_loop& client_loop() override { return *event_loop::current(); }
    task<result<>> ask(callbacks::client& client) override {
        client.connect();
        co_await or_return(co_await has_answer_.wait());
        client.disconnect();
        is_down_.reset();
        if (client.connection() == nullptr) co_return result<>{};
        // If shutdown(2) has failed, the peer waits. A kernel whose shutdown(2) fails ends reads,
        // too.
        const auto ended = co_await with_timeout(is_down_.wait(), 50ms * testing::patience);
        if (!ended) client.stop();
        co_return result<>{};
    }

    async_event has_answer_;
    async_event is_down_;
};
TEST_P(callbacks_faults_test, client) {
    fail_everywhere<asking_on_this_loop>({.on_unhandled = ignore});
}

/// Allocations fail on the loop of the client, which is destroyed on another thread.
class asking_on_another_loop : public asking_by_callbacks {
    [[nodiscard]] bool crosses_threads() const override { return true; }
    [[nodiscard]] event_loop* failing_loop() noexcept override { return &group_[0]; }
    void answered() override { answers_.close(); }
    event_loop& client_loop() override { return group_[0]; }
    task<result<>> ask(callbacks::client& client) override {
        client.connect();
        const auto end = co_await answers_.receive();
        co_return testing::ended(end.error());
    }

    cross_channel<char> answers_{0};
    event_loop_group group_{or_throw(
        event_loop_group::create({.loops = 1,
                                  .loop = {.backend = callbacks_faults_test::used,
                                           .on_unhandled = callbacks_faults_test::ignore}}))};
};
TEST_P(callbacks_faults_test, client_on_a_loop_without_memory) {
    fail_everywhere<asking_on_another_loop>();
}

/// Pauses of 5 s on average, and not of 10 ms; stop() does not wait for their end.
TEST_P(callbacks_faults_test, a_client_without_memory_pauses_by_its_backoff) {
    testing::manual_clock clock;
    auto loop = or_throw(event_loop::create({.backend = GetParam(), .clock = &clock}));
    const testing::closed_port port;
    callbacks::client client{
        loop,
        "127.0.0.1",
        port.number(),
        {},
        {.backoff = {.initial = 10s, .maximum = 10s}, .connect = {}, .stable_after = 1h}};
    auto stop_later = [&]() -> task<> {
        static_cast<void>(co_await async_sleep(1000s));
        client.stop();
    };
    client.connect();
    loop.spawn(stop_later());
    std::size_t attempts = 0;

    {
        const testing::failing_allocations armed{0, true}; // each attempt begins with one
        EXPECT_TRUE(loop.run_for(testing::test_limit));
        attempts = testing::failing_allocations::seen();
    }

    EXPECT_GT(attempts, 50U);
    EXPECT_LT(attempts, 1000U);
    EXPECT_LT(clock.elapsed(), 1000s + 1ms);
}

INSTANTIATE_TEST_SUITE_P(backends, callbacks_faults_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0
