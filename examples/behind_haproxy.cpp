// Tells each client its address, also behind a proxy that speaks the PROXY protocol, such as
// HAProxy with `send-proxy-v2`. Without --direct connections that do not begin with a PROXY header
// are reset. Lesson: server_options::proxy, and connection_info for the addresses.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <string>
#include <string_view>

using namespace simplenet;

//! [handler]
task<> tell(tcp_stream client, connection_info info) {
    std::string text = "you are " + info.peer.to_string();
    if (info.proxied) {
        const auto proxy = client.remote_endpoint();
        if (proxy) text += ", through " + proxy->address().to_string();
    }
    text += '\n';
    const auto told = co_await async_write_all(client, text);
    if (told) std::ignore = co_await async_close_lingering(std::move(client));
}
//! [handler]

int main(int argc, char** argv) {
    example::arguments given{
        argc, argv,
        "behind_haproxy [--address IP] [--port N] [--from PREFIX] [--direct yes]"
        " [--backend automatic|epoll|io_uring]"};
    const auto address = given.address(given.option("--address").value_or("127.0.0.1"));
    const auto port = given.port(given.option("--port").value_or("7000"), 0);
    const std::array sources{given.option("--from").value_or("127.0.0.0/8")};
    const bool direct = given.option("--direct").has_value();
    const auto backend = given.backend();
    given.finish();

    //! [options]
    run_server_options options;
    options.group.loop.backend = backend;
    if (!direct) {
        options.server.proxy = proxy_protocol::required;
        options.server.proxy_sources = sources; // nobody else may claim to be a proxy
    }
    //! [options]
    options.on_listening = [](tcp_server& server, void*) {
        example::announce(server, event_loop::current()->selected_backend());
    };
    const auto ended = run_server({address, port}, tell, options);
    return ended ? 0 : example::failed("cannot serve", ended.error());
}
