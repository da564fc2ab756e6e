// Finds the prime numbers up to a limit: producers send numbers, consumers test them.
// Lesson: a channel between coroutines ends when it is closed, and gives back-pressure for free.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <iostream>
#include <string>
#include <system_error>

using namespace simplenet;

namespace {

//! [produce]
// Every send waits while the channel holds eight numbers, so producers are no faster than
// consumers.
task<result<>> produce(channel<int>& numbers, int from, int to) {
    for (int number = from; number <= to; ++number) {
        if (auto sent = co_await numbers.send(number); !sent) co_return fail(sent);
    }
    co_return {};
}
//! [produce]

bool is_prime(int number) {
    for (int factor = 2; factor * factor <= number; ++factor) {
        if (number % factor == 0) return false;
    }
    return number > 1;
}

//! [consume]
// The end of the channel is an error value, so this loop ends by itself.
task<> consume(channel<int>& numbers, channel<int>& primes) {
    while (const auto number = co_await numbers.receive()) {
        if (is_prime(*number) && !co_await primes.send(*number)) co_return;
    }
}
//! [consume]

task<> print(channel<int>& primes) {
    int count = 0;
    long sum = 0;
    while (const auto prime = co_await primes.receive()) {
        ++count;
        sum += *prime;
    }
    std::cout << count << " primes, their sum is " << sum << '\n';
}

//! [all]
task<result<>> find_primes(int limit) {
    channel<int> numbers{8};
    channel<int> primes{8};
    auto printer = spawn(print(primes));

    // The consumers' group encloses the producers: if anything fails, all of them are stopped and
    // joined.
    const auto ended = co_await with_group([&](task_group& consumers) -> task<result<>> {
        for (int each = 0; each < 3; ++each)
            consumers.spawn(consume(numbers, primes));
        const auto produced = co_await with_group([&](task_group& producers) -> task<> {
            producers.spawn(produce(numbers, 1, limit / 2));
            producers.spawn(produce(numbers, limit / 2 + 1, limit));
            co_return;
        });
        // When the producers are done, close the channel: values already sent are still received.
        numbers.close();
        co_return produced;
    });
    primes.close();
    co_await printer;
    co_return ended;
}
//! [all]

} // namespace

int main(int argc, char** argv) {
    example::arguments given{argc, argv, "producer_consumer [LIMIT]"};
    const auto limit = given.number<unsigned>("limit", given.empty() ? "1000" : given.next("LIMIT"),
                                              1, 1'000'000'000);
    given.finish();

    try {
        const auto ended = run(find_primes(static_cast<int>(limit)));
        return ended ? example::printed() : example::failed("stopped early", ended.error());
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot run", error.code());
    }
}
