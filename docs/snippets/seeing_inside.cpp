// The code of docs/usage/seeing-inside.md.

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <iostream>
#include <source_location>
#include <sstream>
#include <string>
#include <utility>

#include <syslog.h>

using namespace simplenet;
using namespace std::chrono_literals;

task<> program();

//! [name]
task<> serve(tcp_stream client) {
    this_task::set_name("client"); // copied, and kept as long as the task lives
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}
//! [name]

void with_a_signal() {
    //! [signal]
    loop_options options;
    options.dump_signal = SIGUSR1; // kill -USR1: the loop prints its tasks to standard error
    run(program(), options);
    //! [signal]
}

//! [dump]
task<> every_minute() {
    interval minute{60s};
    while (co_await minute.next())
        dump_tasks(std::clog); // the tasks of this loop, including this one
}
//! [dump]

//! [callstack]
task<> where_am_i() {
    for (const std::source_location& at : co_await this_task::callstack())
        std::clog << at.file_name() << ':' << at.line() << '\n';
}
//! [callstack]

void with_a_watchdog() {
    //! [watchdog]
    loop_options options;
    options.stall_threshold = 100ms;
    options.on_stall = [](const stall_report& report) { // on a thread of the library
        std::clog << "task " << report.task << ' ' << report.name << " blocks its loop\n";
        for (const std::string& frame : report.stack)
            std::clog << "    " << frame << '\n';
    };
    run(program(), options);
    //! [watchdog]
}

void with_a_log() {
    //! [log]
    loop_options options;
    options.on_event = [](const loop_event& event, void*) {
        ::syslog(LOG_WARNING, "%s", event.text.data()); // a NUL follows the text
    };
    run(program(), options);
    //! [log]
}

//! [metrics]
task<> report() {
    const loop_metrics now = event_loop::current()->metrics();
    std::clog << now.live_tasks << " tasks, " << now.live_operations << " operations, " << now.turns
              << " turns, " << now.stalls << " stalls\n";
    co_return;
}
//! [metrics]

//! [prometheus]
task<> answer_prometheus(tcp_stream client) {
    std::string request; // not looked at: every path gives the metrics
    auto asked = async_read_until(client, request, "\r\n\r\n", 8192);
    if (!co_await with_timeout(std::move(asked), 5s)) co_return;

    std::ostringstream metrics;
    write_metrics(metrics); // of all loops of the process
    const std::string text = metrics.str();
    const std::string head = "HTTP/1.0 200 OK\r\n"
                             "Content-Type: text/plain; version=0.0.4\r\n"
                             "Content-Length: " +
                             std::to_string(text.size()) + "\r\n\r\n";
    const std::array<const_buffer, 2> answer{head, text};
    (void)co_await async_write_all(client, answer);
}
//! [prometheus]
