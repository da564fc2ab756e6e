// Faults in every call, completion and allocation of loops, and of tasks that work together.

#include "support/background_loop.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::fault_scenario;
using testing::told;

class task_faults_test : public testing::fail_everywhere_test {};

class sleeping : public fault_scenario {
    task<result<std::string>> play() override {
        co_await or_return(co_await async_sleep(100us));
        co_await or_return(co_await async_sleep(0s));
        interval ticks{100us};
        for (int left = 3; left > 0; --left)
            co_await or_return(co_await ticks.next());
        co_await or_return(co_await async_sleep_until(std::chrono::steady_clock::now() + 100us));
        co_return "awake";
    }
};
TEST_P(task_faults_test, timers) {
    fail_everywhere<sleeping>();
}

class speaking_through_a_channel : public fault_scenario {
    static task<result<>> send(channel<int>& through) {
        for (int each = 0; each < 5; ++each) {
            if (auto sent = co_await through.send(each); !sent) co_return sent;
        }
        through.close();
        co_return result<>{};
    }
    task<result<>> receive(channel<int>& through) {
        for (;;) {
            const auto each = co_await through.receive();
            if (!each) co_return testing::ended(each.error());
            got_ += std::to_string(*each);
        }
    }
    task<result<std::string>> play() override {
        channel<int> through{2};
        co_await or_return(co_await gather(send(through), receive(through)));
        co_return got_;
    }
    std::string got_;
};
TEST_P(task_faults_test, channel) {
    fail_everywhere<speaking_through_a_channel>();
}

class taking_turns : public fault_scenario {
    task<result<>> work(async_mutex& mutex, async_semaphore& slots, async_event& go) {
        if (auto started = co_await go.wait(); !started) co_return started;
        if (auto slot = co_await slots.acquire(); !slot) co_return slot;
        {
            auto guard = co_await mutex.lock();
            if (!guard) co_return fail(guard);
            const int before = done_;
            co_await yield();
            done_ = before + 1;
        }
        slots.release();
        co_return result<>{};
    }
    static task<result<>> start(async_event& go) {
        co_await yield();
        go.set();
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        async_mutex mutex;
        async_semaphore slots{2};
        async_event go;
        co_await or_return(co_await gather(work(mutex, slots, go), work(mutex, slots, go),
                                           work(mutex, slots, go), start(go)));
        co_return std::to_string(done_);
    }
    int done_ = 0;
};
TEST_P(task_faults_test, mutex_semaphore_and_event) {
    fail_everywhere<taking_turns>();
}

class racing : public fault_scenario {
    static task<result<int>> tick(int value, int turns) {
        while (turns-- > 0) {
            if (auto slept = co_await async_sleep(0s); !slept) co_return fail(slept);
        }
        co_return value;
    }
    task<result<std::string>> play() override {
        const auto [one, two] = co_await when_all(tick(1, 1), tick(2, 2));
        if (!one) co_return fail(one);
        if (!two) co_return fail(two);
        const auto first = co_await when_any(tick(3, 1), tick(4, 50));
        auto child = spawn(tick(5, 2));
        const auto last = co_await std::move(child);
        if (!last) co_return fail(last);
        co_return std::to_string(*one + *two) + std::to_string(first.index) + std::to_string(*last);
    }
};
TEST_P(task_faults_test, combinators_and_join) {
    fail_everywhere<racing>();
}

class grouping : public fault_scenario {
    task<result<>> child(int value) {
        co_await yield();
        sum_ += value;
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto body = [this](task_group& children) -> task<> {
            for (int each = 1; each <= 5; ++each)
                children.spawn(child(each));
            co_return;
        };
        co_await or_return(co_await with_group({.limit = 2}, body));
        co_return std::to_string(sum_);
    }
    int sum_ = 0;
};
TEST_P(task_faults_test, group_with_a_limit) {
    fail_everywhere<grouping>();
}

/// The body throws directly, perhaps after it has spawned.
class grouping_without_a_coroutine : public fault_scenario {
    static task<> child(int& sum, int value) {
        co_await yield();
        sum += value;
    }
    static task<> rest(int& sum) {
        ++sum;
        co_return;
    }
    task<result<std::string>> play() override {
        int sum = 0;
        auto body = [&sum](task_group& children) -> task<> {
            children.spawn(child(sum, 1));
            children.spawn(child, std::ref(sum), 2);
            return rest(sum);
        };
        co_await or_return(co_await with_group(body));
        co_return std::to_string(sum);
    }
};
TEST_P(task_faults_test, group_whose_body_is_no_coroutine) {
    fail_everywhere<grouping_without_a_coroutine>();
}

/// Faults between the first spawn and the join.
class grouping_by_hand : public fault_scenario {
    static task<> child(int& sum, std::string text) {
        co_await yield();
        sum += static_cast<int>(text.size());
    }
    task<result<std::string>> play() override {
        int sum = 0;
        task_group children;
        for (std::size_t each = 1; each <= 3; ++each) {
            children.spawn(child(sum, std::string(64 * each, 'x')));
            children.spawn(child, std::ref(sum), std::string(100 * each, 'x'));
        }
        co_await or_return(co_await children.join());
        co_return std::to_string(sum);
    }
};
TEST_P(task_faults_test, group_joined_by_hand) {
    fail_everywhere<grouping_by_hand>();
}

class asking_another_loop : public fault_scenario {
    static task<int> answer() {
        co_await yield();
        co_return 42;
    }
    task<result<std::string>> play() override {
        auto asked = other_->spawn_remote(answer());
        const int number = co_await std::move(asked);
        auto twice = [](int value) { return 2 * value; };
        const int more = co_await run_on(*other_, twice, number);
        co_return std::to_string(more);
    }
    [[nodiscard]] bool crosses_threads() const override { return true; }
    testing::background_loop other_{{.backend = backend::epoll}};
};
TEST_P(task_faults_test, another_loop) {
    fail_everywhere<asking_another_loop>();
}

/// With one loop, the walk also reaches the allocations of the loop that runs the task.
class asking_the_same_loop : public fault_scenario {
    static task<int> answer(int number) {
        co_await yield();
        co_return 2 * number;
    }
    task<result<std::string>> play() override {
        event_loop& here = *event_loop::current();
        auto asked = here.spawn_remote(answer(21));
        const int number = co_await std::move(asked);
        const int more = co_await run_on(here, answer, number);
        auto twice = [](int value) { return 2 * value; };
        const int most = co_await run_on(here, twice, more);
        co_return std::to_string(most);
    }
};
TEST_P(task_faults_test, posts_to_the_same_loop) {
    fail_everywhere<asking_the_same_loop>();
}

class sending_across : public fault_scenario {
    task<result<std::string>> play() override {
        auto through = std::make_shared<cross_channel<int>>(2);
        const std::jthread sender{[through] {
            for (int each = 0; each < 5; ++each) {
                while (!through->try_send(each))
                    std::this_thread::yield();
            }
            through->close();
        }};
        std::string got;
        for (;;) {
            const auto each = co_await through->receive();
            if (!each && each.error() == errc::end_of_stream) co_return got;
            if (!each) co_return fail(each);
            got += std::to_string(*each);
        }
    }
};

TEST_P(task_faults_test, cross_channel) {
    fail_everywhere<sending_across>();
}

/// A second loop must not be destroyed on this thread, which runs another one; it needs a thread of
/// its own, without faults.
void run_on_another_thread(const std::function<void()>& body) {
    std::optional<std::thread> thread;
    {
        const testing::exempt_allocations always;
        thread.emplace(body);
    }
    thread->join();
}

/// Creates a loop, uses it on another thread, and destroys it.
class making_loops : public fault_scenario {
    static result<std::string> use(event_loop loop) {
        std::string got;
        auto greet = [](std::string& into) -> task<> {
            if (co_await async_sleep(10us)) into = "hello";
        };
        loop.poll(); // binds it to this thread
        loop.spawn(greet(got));
        loop.run();
        return got;
    }
    task<result<std::string>> play() override {
        event_loop* const here = event_loop::current();
        auto made = event_loop::create({.backend = here->selected_backend(),
                                        .dump_signal = SIGUSR2,
                                        .stall_threshold = std::chrono::hours{1}});
        if (!made) co_return fail(made);
        result<std::string> got;
        std::exception_ptr thrown;
        const auto body = [&] {
            try {
                got = use(*std::move(made));
            } catch (...) {
                thrown = std::current_exception();
            }
        };
        run_on_another_thread(std::ref(body));
        if (thrown) std::rethrow_exception(thrown);
        co_return got;
    }
};
TEST_P(task_faults_test, construction_and_destruction_of_a_loop) {
    fail_everywhere<making_loops>();
}

/// The end of a loop with work in flight.
class abandoning_a_loop : public fault_scenario {
    static task<> wait_for_ever(tcp_listener& listener) {
        static_cast<void>(co_await listener.accept());
    }
    task<result<std::string>> play() override {
        event_loop* const here = event_loop::current();
        auto made = event_loop::create({.backend = here->selected_backend()});
        if (!made) co_return fail(made);
        result<> bound;
        std::exception_ptr thrown;
        const auto body = [&] {
            try {
                event_loop loop = *std::move(made);
                loop.poll(); // binds it to this thread
                auto listener = tcp_listener::bind(testing::own_endpoint());
                if (!listener) {
                    bound = fail(listener);
                    return;
                }
                loop.spawn(wait_for_ever(*listener));
                loop.poll();
                loop.poll();
            } catch (...) {
                thrown = std::current_exception();
            }
        };
        run_on_another_thread(std::ref(body));
        if (thrown) std::rethrow_exception(thrown);
        if (!bound) co_return fail(bound);
        co_return "over";
    }
};
TEST_P(task_faults_test, end_of_a_loop_with_work_in_flight) {
    fail_everywhere<abandoning_a_loop>();
}

/// With io_uring the kernel receives an operation together with its cancel.
class stopping_what_has_just_begun : public fault_scenario {
    task<> read(local_stream& stream) {
        std::array<std::byte, 8> bytes{};
        note(co_await stream.read_some(bytes));
    }
    task<> take(local_stream& stream) { note(co_await stream.receive()); }
    task<> write(local_stream& stream) {
        const std::string text(3'000'000, 'x');
        note(co_await async_write_all(stream, text));
    }
    static task<> do_nothing() { co_return; }
    /// Makes room for a waiting write.
    static task<> drain(local_stream& stream) {
        std::array<std::byte, 4096> bytes;
        while (::recv(stream.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
        }
        co_return;
    }
    void note(const auto& outcome) {
        if (outcome) {
            ++succeeded_;
        } else if (outcome.error() == std::errc::operation_canceled) {
            ++stopped_;
        } else {
            error_ = outcome.error();
        }
    }
    task<result<std::string>> play() override {
        auto [ours, theirs] = co_await or_return(local_stream::pair());
        co_await when_any(read(theirs), do_nothing());
        co_await when_any(take(theirs), do_nothing());
        co_await when_any(write(ours), drain(theirs));
        if (error_) co_return fail(error_);
        co_return told(succeeded_, stopped_);
    }
    int succeeded_ = 0;
    int stopped_ = 0;
    std::error_code error_;
};
TEST_P(task_faults_test, stop_at_once) {
    fail_everywhere<stopping_what_has_just_begun>();
}

INSTANTIATE_TEST_SUITE_P(backends, task_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
