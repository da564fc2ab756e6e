// A chat with rooms on every core: `/join ROOM` enters a room, every other line goes to all in it.
// Lesson: broadcast carries values across loops, and a slow guest loses lines instead of memory.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t longest_line = 1000;
constexpr std::size_t kept_lines = 256; // of each room, for guests that read slowly

using line = std::shared_ptr<const std::string>; // one copy for all guests

//! [rooms]
/// The rooms of all loops. A room exists as long as somebody is in it.
class rooms {
public:
    std::shared_ptr<broadcast<line>> enter(const std::string& name) {
        const std::lock_guard locked{mutex_};
        std::weak_ptr<broadcast<line>>& found = rooms_[name];
        auto room = found.lock();
        if (!room) found = room = std::make_shared<broadcast<line>>(kept_lines);
        return room;
    }
    void tidy() { // called when a guest leaves
        const std::lock_guard locked{mutex_};
        std::erase_if(rooms_, [](const auto& each) { return each.second.expired(); });
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::weak_ptr<broadcast<line>>> rooms_;
};
//! [rooms]

rooms all_rooms;

//! [guest]
struct guest {
    explicit guest(tcp_stream stream)
        : writer{std::move(stream)} {}

    queued_writer<tcp_stream> writer;
    buffered_reader<tcp_stream&> reader{writer.stream()};
};

/// Sends a guest what is said in its room.
task<> tell(guest& to, broadcast<line>::receiver from) {
    while (true) {
        const auto said = co_await from.receive();
        std::string text;
        if (said) {
            text = **said;
        } else if (said.error().code == errc::queue_full) {
            text = "* you missed " + std::to_string(said.error().missed) + " lines\n";
        } else {
            co_return;
        }
        // While a guest does not read, nothing is queued for it: the broadcast drops its lines.
        const auto queued = to.writer.enqueue(text);
        if (!queued) co_return;
        if (*queued == backpressure::high_watermark) {
            const auto room = co_await to.writer.writable();
            if (!room) co_return;
        }
    }
}

/// Passes on what a guest says, until it leaves: returns the next room.
task<result<std::string>> talk(guest& from, broadcast<line>& room) {
    while (true) {
        const auto said = co_await from.reader.read_line(longest_line);
        if (!said) co_return fail(said);
        if (said->starts_with("/join ")) co_return std::string{said->substr(6)};
        room.send(std::make_shared<const std::string>(std::string{*said} + '\n'));
    }
}

task<> serve(tcp_stream stream) {
    guest self{std::move(stream)};
    std::string name = "lobby";
    while (true) {
        const auto room = all_rooms.enter(name);
        std::ignore = self.writer.enqueue("* you are in " + name + '\n');
        auto next = co_await when_any(talk(self, *room), tell(self, room->subscribe()));
        if (next.index != 0 || !*std::get<0>(next.values)) break;
        name = **std::get<0>(std::move(next.values));
    }
    all_rooms.tidy();
}
//! [guest]

} // namespace

int main(int argc, char** argv) {
    const auto given = example::read_server_options(argc, argv, "chat_many_rooms");
    run_server_options options;
    options.group.loop.backend = given.backend;
    options.on_listening = [](tcp_server& server, void*) {
        example::announce(server, event_loop::current()->selected_backend());
    };
    options.grace = 0s; // a chat never ends by itself
    const auto ended = run_server(given.at, serve, options);
    return ended ? 0 : example::failed("cannot serve", ended.error());
}
