//! [program]
#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace simplenet;
using namespace std::chrono_literals;

// Says hello to an echo server and returns what the server sends back.
task<result<std::string>> greet(endpoint server) {
    auto stream = co_await with_timeout(async_connect(server), 2s);
    if (!stream) co_return fail(stream);

    if (auto sent = co_await async_write_all(*stream, "hello"); !sent) co_return fail(sent);
    std::string answer(5, '\0');
    if (auto got = co_await async_read_exact(*stream, answer); !got) co_return fail(got);
    co_return answer;
}

int main() {
    const auto answer = run(greet(endpoint::loopback(7000)));
    if (!answer) {
        std::cerr << "no greeting: " << answer.error().message() << '\n';
        return 1;
    }
    std::cout << *answer << '\n';
}
//! [program]
