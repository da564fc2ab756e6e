// The code of docs/usage/errors.md.

#include <simplenet/simplenet.hpp>

#include <array>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>

using namespace simplenet;

task<result<std::string>> first_answer(endpoint server) {
    //! [look]
    auto stream = co_await async_connect(server);
    if (!stream) {
        std::cerr << "cannot connect: " << stream.error().message() << '\n';
        co_return fail(stream); // the same error, for a result of another type
    }
    std::array<char, 512> buffer;
    auto count = co_await stream->read_some(buffer);
    //! [look]
    if (!count) co_return fail(count);
    co_return std::string(buffer.data(), *count);
}

//! [read all]
task<result<std::string>> read_all(tcp_stream& stream) {
    std::string text;
    std::array<char, 4096> buffer;
    while (true) {
        const auto count = co_await stream.read_some(buffer);
        if (!count && count.error() == errc::end_of_stream) co_return text;
        if (!count) co_return fail(count);
        text.append(buffer.data(), *count);
    }
}
//! [read all]

void compare(const result<std::size_t>& count) {
    if (count) return;
    //! [compare]
    const std::error_code why = count.error();
    if (why == errc::end_of_stream) {
        std::cout << "the peer has finished\n";
    } else if (why == std::errc::connection_reset) {
        std::cout << "the peer has gone away\n";
    } else if (why == std::errc::timed_out) { // our deadline, or TCP's own timeout
        std::cout << "too slow\n";
    } else {
        std::cout << why.category().name() << ": " << why.message() << '\n';
    }
    //! [compare]
}

task<> transfer(tcp_stream& stream, const std::string& text) {
    //! [transfer]
    const auto sent = co_await async_write_all(stream, text);
    if (!sent) {
        std::cerr << sent.error().transferred << " of " << text.size()
                  << " bytes left before this: " << sent.error().message() << '\n';
    }
    //! [transfer]
}

//! [throwing]
task<std::string> greeting(endpoint server) {
    tcp_stream stream = or_throw(co_await async_connect(server));
    std::string text(5, '\0');
    or_throw(co_await async_read_exact(stream, text));
    co_return text;
}

int print_greeting() {
    try {
        std::cout << run(greeting(endpoint::loopback(7000))) << '\n';
        return 0;
    } catch (const std::system_error& error) {
        std::cerr << error.what() << '\n'; // error.code() compares as above
        return 1;
    }
}
//! [throwing]

//! [own]
task<result<int>> read_digit(tcp_stream& stream) {
    std::array<char, 1> digit;
    if (auto got = co_await async_read_exact(stream, digit); !got) co_return fail(got);
    if (digit[0] < '0' || digit[0] > '9') co_return fail(std::errc::bad_message);
    co_return digit[0] - '0';
}
//! [own]
