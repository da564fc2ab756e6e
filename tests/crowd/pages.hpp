#pragma once
// pages: the code of README.md and docs/usage/, for the only source of crowd_idioms.
//
// The code is included unchanged (docs/snippets/; scripts/lint compares it with the pages), one
// namespace for each file. The rest declares what the pages leave to the reader.

#include <simplenet/simplenet.hpp>

#include <any>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <future>
#include <iostream>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <source_location>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <syslog.h>

using namespace simplenet;
using namespace std::chrono_literals;

namespace page::readme {
#include "../../docs/snippets/readme.cpp"
} // namespace page::readme

namespace page::handlers { // not page::callbacks, which would hide that of the library
#include "../../docs/snippets/callbacks.cpp"
} // namespace page::handlers

namespace page::cancellation {
#include "../../docs/snippets/cancellation.cpp"
task<result<std::string>> ask(endpoint, std::string question) {
    co_return question;
}
task<int> count_words() {
    co_return 3;
}
} // namespace page::cancellation

namespace page::coroutines {
#include "../../docs/snippets/coroutines.cpp"
task<result<>> refresh(endpoint) {
    co_return result<>{};
}
task<> heartbeat() {
    co_return;
}
void poll_once() {}
task<int> measure() {
    co_return 1;
}
result<std::string> report_of(int month) {
    return "report of month " + std::to_string(month) + '\n';
}
} // namespace page::coroutines

namespace page::errors {
#include "../../docs/snippets/errors.cpp"
} // namespace page::errors

namespace page::seeing_inside {
#include "../../docs/snippets/seeing_inside.cpp"
task<> program() {
    co_return;
}
} // namespace page::seeing_inside

namespace page::servers {
#include "../../docs/snippets/servers.cpp"
bool start_successor(std::vector<unique_fd>) {
    return false; // the whole restart is in rolling_restart
}
} // namespace page::servers

namespace page::sockets {
#include "../../docs/snippets/sockets.cpp"
} // namespace page::sockets

namespace page::streams {
#include "../../docs/snippets/streams.cpp"
} // namespace page::streams

namespace page::synchronisation {
#include "../../docs/snippets/synchronisation.cpp"
task<result<std::string>> fetch(std::string name) {
    co_return name;
}
std::string compute() {
    return "computed";
}
} // namespace page::synchronisation

namespace page::writing {
#include "../../docs/snippets/writing.cpp"
std::vector<std::byte> next_frame() {
    return std::vector<std::byte>(4096, std::byte{'f'});
}
} // namespace page::writing
