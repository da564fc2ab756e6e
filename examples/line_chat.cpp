// A chat with names: a client's first line is its name; every later line goes to all others.
// Lesson: buffered_reader for lines, queued_writer for a connection that many tasks write to.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <list>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

constexpr std::size_t longest_line = 1000;
// A guest is disconnected when 256 KiB wait for it because it reads too slowly.
constexpr watermarks marks{.low = 16 * 1024, .high = 64 * 1024, .limit = 256 * 1024};

//! [guest]
struct guest {
    explicit guest(tcp_stream stream)
        : writer{std::move(stream), marks} {}

    queued_writer<tcp_stream> writer;                     // any task may enqueue
    buffered_reader<tcp_stream&> reader{writer.stream()}; // only its own task reads
    std::string name;
};
//! [guest]

class room {
public:
    //! [tell]
    // Never waits: the loop sends all queued lines when this task suspends.
    void tell_all(std::string_view line, const guest* but = nullptr) {
        for (guest& each : guests_) {
            if (&each == but || each.writer.enqueue(line)) continue;
            each.writer.stream().close(); // its serve() notices, and ends
        }
    }
    //! [tell]

    task<> serve(tcp_stream stream) {
        const auto self = guests_.emplace(guests_.end(), std::move(stream));
        co_await listen_to(*self);
        const std::string name = self->name;
        guests_.erase(self);
        if (!name.empty()) tell_all("* " + name + " left\n");
    }

private:
    task<> listen_to(guest& self) {
        std::ignore = self.writer.enqueue("Your name?\n");
        const auto name = co_await with_timeout(self.reader.read_line(32), 60s);
        if (!name || name->empty()) co_return;
        self.name = *name; // the view is valid until the reader's next call
        tell_all("* " + self.name + " joined\n");

        //! [lines]
        auto line = co_await self.reader.read_line(longest_line);
        while (line && *line != "/quit") {
            tell_all(self.name + ": " + std::string{*line} + "\n", &self);
            line = co_await self.reader.read_line(longest_line);
        }
        //! [lines]
        const bool too_long = !line && line.error() == errc::limit_exceeded;
        if (too_long) std::ignore = self.writer.enqueue("That was too long. ");
        std::ignore = self.writer.enqueue("Bye!\n");
        // The queued lines arrive before the end of the stream. A guest that does not read gets 5
        // s.
        std::ignore = co_await with_timeout(self.writer.graceful_shutdown(), 5s);
    }

    std::list<guest> guests_; // do not move while others come and go
};

task<result<>> open(tcp_listener listener) {
    room lobby; // outlives its users: the group joins all tasks before it returns
    co_return co_await with_group([&](task_group& guests) -> task<result<>> {
        while (true) {
            auto client = co_await listener.accept();
            if (!client) co_return fail(client);
            guests.spawn(lobby.serve(*std::move(client)));
        }
    });
}

int main(int argc, char** argv) {
    return example::run_server(argc, argv, "line_chat", open);
}
