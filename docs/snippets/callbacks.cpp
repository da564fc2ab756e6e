// Examples of the reference of layer callbacks.

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
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
