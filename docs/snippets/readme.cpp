//! [echo]
#include <simplenet/simplenet.hpp>

#include <cstdio>

using namespace simplenet;

task<> serve(tcp_stream client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}

int main() {
    const auto ended = run_server(endpoint::loopback(7000), serve);
    if (!ended) std::fprintf(stderr, "cannot serve: %s\n", ended.error().message().c_str());
    return ended ? 0 : 1;
}
//! [echo]
