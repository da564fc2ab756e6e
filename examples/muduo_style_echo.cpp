// An echo server on every core whose connections call functions, as in muduo. A signal ends it.
// Lesson: send() never waits, so the high-water mark has to stop a client that does not read.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <csignal>
#include <cstddef>
#include <system_error>
#include <utility>

using namespace simplenet;
using callbacks::connection_ptr;

namespace {

//! [echo]
void prepare(const connection_ptr& connection) {
    if (connection->is_connected()) connection->set_high_water_mark(64 * 1024);
}

void echo(const connection_ptr& connection, callbacks::buffer& input) {
    connection->send(input); // what the kernel does not take is copied
    input.retrieve_all();
}

// The client sends, and does not read its answers: it has to wait until it does.
void wait_for_reader(const connection_ptr& connection, std::size_t) {
    connection->stop_reading();
}

void go_on(const connection_ptr& connection) {
    connection->start_reading();
}
//! [echo]

//! [server]
callbacks::server make_server(event_loop_group& group, const endpoint& at) {
    callbacks::handlers handlers;
    handlers.on_connection = prepare;
    handlers.on_message = echo;
    handlers.on_high_water_mark = wait_for_reader;
    handlers.on_write_complete = go_on;
    return {group, at, std::move(handlers)}; // listens; start() serves
}
//! [server]

// The threads of the group serve; the main thread waits for a signal.
task<result<>> serve(event_loop_group& group, endpoint at) {
    signal_set signals{SIGINT, SIGTERM};
    auto server = make_server(group, at);
    server.start();
    example::announce(server, group[0].selected_backend());
    const auto number = co_await signals.next();
    if (!number) co_return fail(number);
    co_return result<>{};
} // the end of the server ends its connections

} // namespace

int main(int argc, char** argv) {
    const auto given = example::read_server_options(argc, argv, "muduo_style_echo");
    auto group = event_loop_group::create({.loop = {.backend = given.backend}});
    if (!group) return example::failed("cannot make the event loops", group.error());
    try {
        const auto ended = run(serve(*group, given.at), {.backend = given.backend});
        if (!ended && ended.error() != std::errc::operation_canceled) { // a signal came before
            return example::failed("cannot wait for a signal", ended.error());
        }
    } catch (const std::system_error& error) {
        return example::failed("cannot serve on " + given.at.to_string(), error.code());
    }
}
