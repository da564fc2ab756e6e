// A chat room: every line that a client sends goes to all the others.
// Lesson: tasks on one loop share state without a lock, and no slow reader holds up the others.
// line_chat.cpp adds names, lines by buffered_reader, and a farewell.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <list>
#include <string>
#include <utility>

using namespace simplenet;

class room {
    using member = queued_writer<tcp_stream>; // owned by its serve()
    std::list<member*> members_;

    // Never waits. If a member does not read, only its own queue grows, up to the limit.
    void tell_all(const std::string& line, const member* but = nullptr) {
        for (member* each : members_) {
            if (each == but || each->enqueue(line)) continue;
            each->stream().close(); // its serve() notices
        }
    }
    // Serves one client until it leaves, is reset, or sends a line that is too long.
    task<> serve(tcp_stream stream, std::string name) {
        member self{std::move(stream), {.limit = 1024 * 1024}};
        members_.push_back(&self);
        tell_all("* " + name + " joined\n");
        std::array<char, 4096> buffer;
        std::string text;
        while (auto count = co_await self.stream().read_some(buffer)) {
            text.append(buffer.data(), *count);
            for (std::size_t end = 0; (end = text.find('\n') + 1) != 0; text.erase(0, end)) {
                tell_all(name + ": " + text.substr(0, end), &self);
            }
            if (text.size() > buffer.size()) break;
        }
        members_.remove(&self);
        tell_all("* " + name + " left\n");
    }

public:
    //! [serve]
    static task<result<>> open(tcp_listener listener) {
        room lobby; // outlives its users: the group joins all tasks before it returns
        co_return co_await with_group([&](task_group& tasks) -> task<result<>> {
            for (unsigned number = 1;; ++number) {
                auto client = co_await listener.accept();
                if (!client) co_return fail(client);
                tasks.spawn(lobby.serve(*std::move(client), "client " + std::to_string(number)));
            }
        });
    }
    //! [serve]
};

int main(int argc, char** argv) {
    return example::run_server(argc, argv, "chat_server", room::open);
}
