// The code of docs/usage/callbacks.md and of the reference of layer callbacks.

#include <simplenet/simplenet.hpp>

#include <any>
#include <chrono>
#include <iostream>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

using namespace simplenet;

//! [buffer]
/// Prints the whole messages in `input`, each of which follows its length; keeps the rest.
void print_messages(callbacks::buffer& input) {
    while (input.readable() >= 4) {
        const std::size_t length = input.peek_u32();
        if (input.readable() - 4 < length) return; // the rest will arrive later
        input.retrieve(4);
        std::cout << std::string_view{input.peek(), length} << '\n';
        input.retrieve(length);
    }
}
//! [buffer]

void remind(event_loop& loop) {
    //! [timers]
    using namespace std::chrono_literals;
    const auto ticking = callbacks::run_every(loop, 1s, [] { std::cout << "tick\n"; });
    callbacks::run_after(loop, 10s, [&loop, ticking] { callbacks::cancel(loop, ticking); });
    //! [timers]
}

//! [client]
/// Stays connected to `host`, says who it is, and prints what it hears.
callbacks::client listen_to(event_loop& loop, const std::string& host) {
    callbacks::handlers handlers;
    handlers.on_connection = [](const callbacks::connection_ptr& connection) {
        if (connection->is_connected()) connection->send("listener\r\n");
    };
    handlers.on_message = [](const callbacks::connection_ptr&, callbacks::buffer& input) {
        std::cout << input.retrieve_all_as_string();
    };
    callbacks::client client{loop, host, 7000, std::move(handlers)};
    client.connect();
    return client;
}
//! [client]

//! [room]
/// What one member sends goes to all. Its members are served by several loops.
class room {
public:
    void on_connection(const callbacks::connection_ptr& member) {
        const std::lock_guard locked{mutex_};
        if (member->is_connected()) {
            member->set_limit(1024 * 1024); // closes the connection of one that does not read
            members_.insert(member);
            if (is_closed_) member->shutdown();
        } else {
            members_.erase(member);
        }
    }
    void on_message(const callbacks::connection_ptr&, callbacks::buffer& input) {
        const std::string text = input.retrieve_all_as_string();
        const std::lock_guard locked{mutex_};
        for (const auto& each : members_)
            each->send(text); // on any thread
    }
    void close() {
        const std::lock_guard locked{mutex_};
        is_closed_ = true; // for those who still arrive
        for (const auto& each : members_)
            each->shutdown(); // when its queue has been sent
    }

private:
    std::mutex mutex_;
    std::set<callbacks::connection_ptr> members_;
    bool is_closed_ = false;
};
//! [room]

//! [serve]
/// Serves a room until Enter is pressed.
void serve_room(event_loop_group& group) {
    using namespace std::chrono_literals;
    room here; // lives longer than the server
    callbacks::handlers handlers;
    handlers.on_connection = [&](const callbacks::connection_ptr& member) {
        here.on_connection(member);
    };
    handlers.on_message = [&](const callbacks::connection_ptr& member, callbacks::buffer& input) {
        here.on_message(member, input);
    };
    callbacks::server server{group, endpoint::any(7000), handlers};
    server.start(); // returns at once
    std::cin.get();

    here.close();
    const shutdown_report end = run(server.shutdown(10s)); // returns when the last one has gone
    if (end.cut != 0) std::cerr << end.cut << " did not leave in time\n";
}
//! [serve]

//! [idle]
void ask_whether_it_lives(const callbacks::connection_ptr& idle) {
    const auto asked = std::any_cast<bool>(&idle->context());
    if (asked != nullptr) return idle->close(); // no answer to the last question
    idle->context() = true;
    idle->send("ping\r\n");
}
//! [idle]

std::string answer_to(const std::string& request) {
    return request;
}

//! [pool]
callbacks::handlers compute_elsewhere(thread_pool& pool) {
    callbacks::handlers handlers;
    handlers.on_message = [&pool](const callbacks::connection_ptr& asker,
                                  callbacks::buffer& input) {
        // The loop serves others meanwhile. Answers may overtake each other: a strand keeps order.
        pool.post(
            [asker, request = input.retrieve_all_as_string()] { asker->send(answer_to(request)); });
    };
    return handlers;
}
//! [pool]

//! [task]
task<> answer_later(callbacks::connection_ptr asker, std::string request) {
    std::string answer = co_await run_blocking(answer_to, std::move(request));
    asker->send(std::move(answer)); // does nothing if the asker has left
}

void start_answering(const callbacks::connection_ptr& asker, callbacks::buffer& input) {
    spawn(answer_later(asker, input.retrieve_all_as_string())).detach();
}
//! [task]
