// A chat room: every line that a client sends goes to all the others.
// Lesson: tasks on one loop share state without a lock, and no slow reader holds up the others.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <list>
#include <memory>
#include <string>
#include <utility>

using namespace simplenet;

class room {
    // Owned by the task that reads from it and, while something is unsent, by send_unsent().
    struct member {
        tcp_stream stream;
        std::string unsent = {};
    };
    std::list<std::shared_ptr<member>> members_;
    task_group* tasks_ = nullptr; // while the room is open

    // Never waits. A member that does not read lets only its own `unsent` grow, up to a limit.
    void tell_all(const std::string& line, const std::shared_ptr<member>& but = nullptr) {
        for (const auto& each : members_) {
            if (each == but) continue;
            if (each->unsent.empty()) tasks_->spawn(send_unsent(each)); // starts a turn later
            each->unsent += line;
            if (each->unsent.size() > 1024 * 1024) each->stream.close(); // its serve() sees that
        }
    }
    // Lives only while there is something to send: nobody waits for lines that may never come.
    static task<> send_unsent(std::shared_ptr<member> to) {
        while (!to->unsent.empty()) {
            const std::string batch = to->unsent; // the kernel reads it while `unsent` grows
            if (!co_await async_write_all(to->stream, batch)) to->stream.close();
            to->unsent.erase(0, batch.size());
        }
    }
    // The whole stay of one client, until it leaves, is reset, or sends a line without end.
    task<> serve(tcp_stream stream, std::string name) {
        const auto self = std::make_shared<member>(std::move(stream));
        members_.push_back(self);
        tell_all("* " + name + " joined\n");
        std::array<char, 4096> buffer;
        std::string text;
        while (auto count = co_await self->stream.read_some(buffer)) {
            text.append(buffer.data(), *count);
            for (std::size_t end = 0; (end = text.find('\n') + 1) != 0; text.erase(0, end)) {
                tell_all(name + ": " + text.substr(0, end), self);
            }
            if (text.size() > buffer.size()) break;
        }
        members_.remove(self);
        self->stream.close(); // ends its send_unsent() too
        tell_all("* " + name + " left\n");
    }

public:
    //! [serve]
    static task<result<>> open(tcp_listener listener) {
        room lobby; // outlives the tasks that use it: the group joins them before it returns
        co_return co_await with_group([&](task_group& tasks) -> task<result<>> {
            lobby.tasks_ = &tasks;
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
