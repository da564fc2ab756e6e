// One echo round trip through the installed package, using only its public headers.

#if __has_include(<simplenet/simplenet.hpp>)

#include <simplenet/simplenet.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

using namespace simplenet;

namespace {

task<> echo_one(tcp_listener listener) {
    auto client = co_await listener.accept();
    if (!client) co_return;

    std::array<std::byte, 64> buffer{};
    while (auto count = co_await client->read_some(buffer)) {
        if (!co_await async_write_all(*client, std::span{buffer}.first(*count))) co_return;
    }
}

task<bool> round_trip() {
    constexpr std::string_view sent = "hello, package";

    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    const auto address = or_throw(listener.local_endpoint());
    auto server = spawn(echo_one(std::move(listener)));

    auto stream = or_throw(co_await async_connect(address));
    or_throw(co_await async_write_all(stream, sent));
    std::array<char, sent.size()> back{};
    or_throw(co_await async_read_exact(stream, back));
    stream.close();
    co_await server;

    co_return std::string_view{back.data(), back.size()} == sent;
}

} // namespace

int main() {
    const bool same = run(round_trip());
    std::puts(same ? "consumer: the bytes came back" : "consumer: the bytes differ");
    return same ? 0 : 1;
}

#else

#include <simplenet/core/error.hpp>

#include <cstdio>

int main() {
    const std::error_code code = simplenet::errc::end_of_stream;
    std::printf("consumer: %s: %s\n", code.category().name(), code.message().c_str());
    return code == simplenet::errc::end_of_stream ? 0 : 1;
}

#endif
