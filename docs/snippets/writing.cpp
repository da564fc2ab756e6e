// The code of docs/usage/writing.md.

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using namespace simplenet;
using namespace std::chrono_literals;

std::vector<std::byte> next_frame();

//! [scratch]
/// The connection holds no buffer while it waits for the next request.
task<result<>> answer_requests(tcp_stream& stream) {
    while (true) {
        if (const auto there = co_await stream.readable(); !there) co_return there;
        const scratch memory = scratch::borrow(32 * 1024);
        const auto count = co_await stream.read_some(memory);
        if (!count) co_return fail(count);
        const auto sent = co_await async_write_all(stream, memory.bytes().first(*count));
        if (!sent) co_return fail(sent);
    } // gives the memory back
}
//! [scratch]

//! [broadcast]
using client = queued_writer<tcp_stream>;

void tell_all(std::list<client>& clients, std::string_view line) {
    for (client& each : clients) {
        if (!each.enqueue(line)) each.stream().close(); // the peer is gone, or megabytes behind
    }
}
//! [broadcast]

task<> kinds(tcp_stream stream) {
    //! [enqueue]
    queued_writer writer{std::move(stream)};
    std::ignore = writer.enqueue("copied");     // literals, views, buffers, named strings
    std::ignore = writer.enqueue(next_frame()); // a vector of bytes: owned, not copied
    std::string page = "<html>...";
    std::ignore = writer.enqueue(std::move(page)); // the same for a string
    //! [enqueue]
    co_return;
}

//! [pressure]
task<result<>> stream_frames(queued_writer<tcp_stream>& to) {
    while (true) {
        const auto taken = to.enqueue(next_frame());
        if (!taken) co_return fail(taken);
        if (*taken == backpressure::high_watermark) {
            // Returns when less than the low mark is queued.
            if (auto writable = co_await to.writable(); !writable) co_return writable;
        }
    }
}
//! [pressure]

//! [droppable]
void send_position(queued_writer<tcp_stream>& to, std::string_view position) {
    if (to.high_watermark_active()) return; // the next position will be newer
    std::ignore = to.enqueue(position);
}
//! [droppable]

task<> marks(tcp_stream stream) {
    //! [marks]
    constexpr watermarks small{.low = 4096, .high = 16384, .limit = 65536}; // bytes
    queued_writer writer{std::move(stream), small};
    //! [marks]
    std::ignore = writer;
    co_return;
}

task<> ends(queued_writer<tcp_stream> writer) {
    //! [end]
    std::ignore = writer.enqueue("goodbye\n");
    // Sends the queued bytes, then tells the peer that no more will come.
    if (auto ended = co_await with_timeout(writer.graceful_shutdown(), 5s); !ended) {
        std::cerr << "not all was sent: " << ended.error().message() << '\n';
    }
    //! [end]
}

task<> copies(tcp_stream& from, local_stream& to) {
    //! [copy]
    const auto copied = co_await async_copy(from, to); // to the end of the stream
    if (copied) {
        std::cout << *copied << " bytes\n";
    } else {
        std::cout << copied.error().message() << " after " << copied.error().transferred
                  << " bytes\n";
    }
    //! [copy]
}

task<> proxies(tcp_stream& client, tcp_stream& server) {
    //! [proxy]
    const auto moved = co_await with_timeout(async_copy_bidirectional(client, server), 10min);
    const copy_counts counts = moved ? *moved : moved.error().counts; // exact in every case
    std::cout << counts.a_to_b << " bytes to the server, " << counts.b_to_a << " back\n";
    //! [proxy]
}
