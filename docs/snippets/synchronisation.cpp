// The code of docs/usage/synchronisation.md.

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <deque>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

task<result<std::string>> fetch(std::string name);
std::string compute();

//! [mutex]
class account {
public:
    task<result<>> deposit(tcp_stream& ledger, std::string line) {
        const auto held = co_await mutex_.lock();
        if (!held) co_return fail(held); // stopped: nothing is locked
        // No other task writes between these two, however long they take.
        if (auto sent = co_await async_write_all(ledger, line); !sent) co_return fail(sent);
        if (auto sent = co_await async_write_all(ledger, "\n"); !sent) co_return fail(sent);
        co_return {};
    } // unlocks

private:
    async_mutex mutex_;
};
//! [mutex]

//! [semaphore]
task<result<std::string>> fetch_politely(async_semaphore& at_once, std::string name) {
    auto mine = co_await at_once.acquire_permit();
    if (!mine) co_return fail(mine);
    co_return co_await fetch(std::move(name));
}
//! [semaphore]

//! [event]
task<result<>> use_when_ready(async_event& configured) {
    co_return co_await with_timeout(configured.wait(), 10s);
}
//! [event]

//! [condition]
struct mailbox {
    async_mutex mutex;
    async_condition_variable changed;
    std::deque<std::string> letters;
};

task<result<std::string>> take_letter(mailbox& box) {
    auto held = co_await box.mutex.lock();
    if (!held) co_return fail(held);
    auto there = co_await box.changed.wait(*held, [&box] { return !box.letters.empty(); });
    if (!there) co_return fail(there); // locked here too
    auto letter = std::move(box.letters.front());
    box.letters.pop_front();
    co_return letter;
}
//! [condition]

//! [oneshot]
struct question {
    std::string text;
    oneshot<std::string>::sender answer; // if it is dropped, the asker is told
};

task<result<std::string>> ask(channel<question>& to, std::string text) {
    oneshot<std::string> answer;
    question asked{std::move(text), answer.make_sender()};
    if (auto sent = co_await to.send_from(asked); !sent) co_return fail(sent);
    co_return co_await with_timeout(answer.receive(), 1s);
}
//! [oneshot]

//! [kept]
task<> hand_over(channel<std::string>& letters, std::string letter) {
    const auto sent = co_await with_timeout(letters.send_from(letter), 1s);
    if (!sent) std::cerr << "not delivered: " << letter << '\n'; // we still have it
}
//! [kept]

//! [cross]
task<> show(cross_channel<std::string>& results) {
    while (const auto text = co_await results.receive())
        std::cout << *text << '\n';
}

int compute_and_show() {
    cross_channel<std::string> results{16};
    std::thread worker{[&results] { // has no loop, so it may block
        for (int each = 0; each < 100; ++each) {
            if (!results.blocking_send(compute())) return; // closed: nobody receives any more
        }
        results.close();
    }};
    run(show(results));
    results.close(); // in case a signal ended show()
    worker.join();
    return 0;
}
//! [cross]

//! [broadcast]
task<> follow(broadcast<std::string>::receiver room) { // one for each client, on any loop
    for (;;) {
        const auto line = co_await room.receive();
        if (line)
            std::cout << *line << '\n';
        else if (line.error() == errc::queue_full)
            std::cout << line.error().missed << " lines missed\n";
        else
            co_return; // the room is closed, or this task was stopped
    }
}

void say(broadcast<std::string>& room, std::string line) {
    room.send(std::move(line)); // on any thread; never waits
}
//! [broadcast]

//! [watch]
struct settings {
    std::string greeting;
    int limit = 10;
};

task<> keep_up_to_date(watch<settings>::receiver latest, int& limit) {
    while (const auto changed = co_await latest.changed()) // until the last watch is gone
        limit = latest.get().limit;
}

void raise_limit(watch<settings>& current) { // on any thread
    current.update([](settings& now) { now.limit += 10; });
}
//! [watch]
