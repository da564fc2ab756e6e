//! [echo]
#include <simplenet/simplenet.hpp>

#include <system_error>
#include <utility>

using namespace simplenet;

task<> serve(tcp_stream client) {
    while (auto bytes = co_await client.receive()) {
        if (!co_await async_write_all(client, *bytes)) break;
    }
}

task<result<>> listen(tcp_listener listener) {
    co_return co_await with_group([&](task_group& clients) -> task<result<>> {
        while (true) {
            auto client = co_await listener.accept();
            if (!client) co_return fail(client);
            clients.spawn(serve(*std::move(client)));
        }
    });
}

int main() {
    const auto ended = run(listen(or_throw(tcp_listener::bind(endpoint::loopback(7000)))));
    return ended || ended.error() == std::errc::operation_canceled ? 0 : 1;
}
//! [echo]
