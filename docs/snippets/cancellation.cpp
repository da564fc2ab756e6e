// The code of docs/usage/cancellation-and-deadlines.md.

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <iostream>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

task<result<std::string>> ask(endpoint server, std::string question);
task<int> count_words();

task<> limits(tcp_stream& stream, endpoint server) {
    //! [timeout]
    std::array<std::byte, 512> buffer;
    const auto count = co_await with_timeout(stream.read_some(buffer), 5s);
    if (!count && count.error() == errc::deadline_exceeded) {
        std::cout << "nothing came for five seconds\n"; // the stream is still usable
    }
    //! [timeout]

    //! [whole]
    const auto answer = co_await with_timeout(ask(server, "how are you?"), 2s);
    //! [whole]
    if (!answer) co_return;

    //! [plain]
    const result<int> words = co_await with_timeout(count_words(), 2s); // for a task<int>
    //! [plain]
    std::ignore = words;
}

//! [deadline]
task<result<std::string>> ask_twice(endpoint first, endpoint second) {
    const auto deadline = std::chrono::steady_clock::now() + 3s; // for both calls together
    if (auto answer = co_await with_deadline(ask(first, "ping"), deadline)) co_return answer;
    co_return co_await with_deadline(ask(second, "ping"), deadline);
}
//! [deadline]

//! [loop]
task<> copy(tcp_stream from, tcp_stream to) {
    // Nothing here mentions a stop, and nothing needs to: read and write fail, the loop ends, and
    // the streams are closed.
    while (auto bytes = co_await from.receive()) {
        if (!co_await async_write_all(to, *bytes)) break;
    }
}
//! [loop]

//! [level]
task<> polite(tcp_stream client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
    // After a stop this would fail at once, like every operation. Inside shield() it is attempted,
    // but not for ever.
    std::ignore = co_await shield(with_timeout(async_write_all(client, "bye\n"), 1s));
}
//! [level]

//! [token]
// Any thread may call request_stop() of the token's source.
task<result<std::string>> ask_until(std::stop_token token, endpoint server) {
    co_return co_await with_stop(token, ask(server, "how are you?"));
}
//! [token]

//! [busy]
task<bool> search(const std::string& text, char wanted) {
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == wanted) co_return true;
        if (at % 100'000 == 0) {
            if (co_await this_task::stop_requested()) co_return false;
            co_await yield();
        }
    }
    co_return false;
}
//! [busy]

//! [offset]
task<result<>> send_patiently(tcp_stream& stream, const_buffer text) {
    while (!text.empty()) {
        const auto sent = co_await with_timeout(async_write_all(stream, text), 1s);
        if (sent) break;
        if (sent.error() != errc::deadline_exceeded) co_return fail(sent);
        text = text.subspan(sent.error().transferred); // continue where it stopped
        std::cout << text.size() << " bytes to go\n";
    }
    co_return result<>{};
}
//! [offset]

task<> serve(tcp_stream client) {
    //! [idle]
    client.set_idle_timeout(30s);
    while (auto bytes = co_await client.receive()) { // fails after 30 s of silence
        if (!co_await async_write_all(client, *bytes)) break;
    }
    //! [idle]
}
