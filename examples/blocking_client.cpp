// Sends a line to a TCP server and prints the answer, without a loop or a coroutine.
// Lesson: the blocking layer has the same errors, buffers and names; its calls simply block.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <iostream>
#include <string>

using namespace simplenet;
using namespace std::chrono_literals;

//! [ask]
result<std::string> ask(const endpoint& server, std::string_view question) {
    auto stream = blocking::tcp_stream::connect(server, 5s);
    if (!stream) return fail(stream);

    if (auto sent = stream->write_all(question); !sent) return fail(sent);
    // A half-close: the server sees the end of our data and can still answer.
    if (auto done = stream->shutdown_write(); !done) return fail(done);

    std::string answer;
    std::array<char, 4096> buffer;
    while (true) {
        const auto count = stream->read_some(buffer); // at least one byte, or an error
        if (!count && count.error() == errc::end_of_stream) return answer;
        if (!count) return fail(count);
        answer.append(buffer.data(), *count);
    }
}
//! [ask]

int main(int argc, char** argv) {
    example::arguments given{argc, argv, "blocking_client ADDRESS PORT [TEXT]"};
    const auto address = given.address(given.next("ADDRESS"));
    const endpoint server{address, given.port(given.next("PORT"))};
    const std::string text{given.empty() ? "hello" : given.next("TEXT")};
    given.finish();

    const auto answer = ask(server, text + "\n");
    if (!answer) return example::failed("cannot ask " + server.to_string(), answer.error());
    std::cout << *answer;
    return example::printed();
}
