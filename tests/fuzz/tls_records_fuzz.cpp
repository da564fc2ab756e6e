// TLS against a peer that sends any bytes, and against somebody between two honest ends who cuts,
// changes, inserts, drops and repeats what they send. Whatever happens, an end gets a beginning of
// what the other one has sent, and an end of stream only behind all of it. Certificates and keys of
// any bytes are loaded, too.

#include "fuzz/fuzz.hpp"
#include "fuzz/on_loop.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/tls/context.hpp>
#include <simplenet/tls/errc.hpp>
#include <simplenet/tls/stream.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::fuzz {
namespace {

using tls_stream = tls::stream<duplex_stream>;

const std::string directory = TLS_CERTIFICATES;

const tls::context& server_context() {
    static const tls::context made = [] {
        const std::string chain = directory + "/server.pem";
        const std::string key = directory + "/server.key";
        return or_throw(
            tls::context::server({.certificate_chain_file = chain, .private_key_file = key}));
    }();
    return made;
}
const tls::context& client_context() {
    static const tls::context made = [] {
        const std::string root = directory + "/root.pem";
        return or_throw(tls::context::client({.ca_file = root}));
    }();
    return made;
}

// --- a peer that sends anything ------------------------------------------------------------------

task<> hear(tls_stream end) {
    std::array<std::byte, 256> buffer;
    const auto count = co_await end.read_some(buffer);
    FUZZ_CHECK(!count); // nobody has proved who they are
    FUZZ_CHECK(count.error() != errc::end_of_stream);
    const auto again = co_await end.write_some("x");
    FUZZ_CHECK(!again);
}

task<> say_anything(input& bytes, duplex_stream to) {
    while (!bytes.empty()) {
        const std::string_view piece = bytes.text(1 + bytes.byte());
        const auto sent = co_await async_write_all(to, piece);
        if (!sent) break;
    }
    to.close();
}

task<> anything(input& bytes, bool to_server) {
    auto [ours, theirs] = duplex(std::size_t{1} << 20U);
    tls_stream end =
        to_server ? tls_stream{std::move(ours), server_context()}
                  : tls_stream{std::move(ours), client_context(), {.server_name = "localhost"}};
    co_await when_all(hear(std::move(end)), say_anything(bytes, std::move(theirs)));
}

// --- somebody in the middle ----------------------------------------------------------------------

struct middle {
    input& bytes;
    duplex_stream to_client;
    duplex_stream to_server;
    std::size_t moved = 0;
    int running = 2; // pumps
};

/// Sends `piece` on, or something else.
task<result<>> pass_on(middle& at, duplex_stream& to, std::string piece) {
    const std::size_t place = piece.empty() ? 0 : at.bytes.up_to(piece.size() - 1);
    switch (at.bytes.byte() % 12) {
    case 1:
        piece[place] = static_cast<char>(piece[place] ^ at.bytes.byte());
        break;
    case 2:
        piece.insert(place, at.bytes.text(at.bytes.byte()));
        break;
    case 3:
        piece.erase(place, at.bytes.byte());
        break;
    case 4:
        piece += piece.substr(place);
        break;
    case 5: { // in two parts
        const auto first = co_await async_write_all(to, std::string_view{piece}.substr(0, place));
        if (!first) co_return fail(first);
        co_await turns(at.bytes.up_to(5));
        piece.erase(0, place);
        break;
    }
    case 6: // cut
        piece.erase(place);
        static_cast<void>(co_await async_write_all(to, piece));
        co_return fail(std::errc::connection_aborted);
    default:
        break;
    }
    const auto sent = co_await async_write_all(to, piece);
    if (!sent) co_return fail(sent);
    co_return result<>{};
}

task<> pump(middle& at, duplex_stream& from, duplex_stream& to) {
    std::string buffer(20'000, '\0');
    for (;;) {
        const auto count = co_await from.read_some(mutable_buffer{buffer});
        if (!count) break;
        ++at.moved;
        const auto passed = co_await pass_on(at, to, buffer.substr(0, *count));
        if (!passed) break;
    }
    static_cast<void>(co_await async_shutdown_write(to));
    --at.running;
}

/// Closes when nothing happens any more: what was dropped may be waited for.
task<> give_up(middle& at) {
    std::size_t before = at.moved;
    for (int idle = 0; at.running != 0 && idle < 100; ++idle) {
        co_await yield();
        if (std::exchange(before, at.moved) != at.moved) idle = 0;
    }
    at.to_client.close();
    at.to_server.close();
}

constexpr std::size_t most_sent = 40'000;

task<> speak(tls_stream& end, const std::string& text) {
    const auto sent = co_await async_write_all(end, text);
    if (sent) static_cast<void>(co_await end.shutdown_write());
}
task<> listen(tls_stream& end, const std::string& expected, std::size_t piece) {
    std::string got;
    std::string buffer(piece, '\0');
    for (;;) {
        const auto count = co_await end.read_some(mutable_buffer{buffer});
        if (!count) {
            FUZZ_CHECK(count.error() != errc::end_of_stream || got == expected);
            break;
        }
        got.append(buffer, 0, *count);
        FUZZ_CHECK(expected.starts_with(got));
    }
}

task<> meddle(input& bytes) {
    auto [client_end, to_client] = duplex(1 + bytes.up_to(60'000));
    auto [server_end, to_server] = duplex(1 + bytes.up_to(60'000));
    const std::string forth = pattern(0, bytes.up_to(most_sent), 1);
    const std::string back = pattern(0, bytes.up_to(most_sent), 2);
    const std::size_t piece = 1 + bytes.up_to(20'000);
    middle at{.bytes = bytes, .to_client = std::move(to_client), .to_server = std::move(to_server)};
    tls_stream client{std::move(client_end), client_context(), {.server_name = "localhost"}};
    tls_stream server{std::move(server_end), server_context()};
    co_await when_all(speak(client, forth), listen(client, back, piece), speak(server, back),
                      listen(server, forth, piece), pump(at, at.to_client, at.to_server),
                      pump(at, at.to_server, at.to_client), give_up(at));
}

// --- files ---------------------------------------------------------------------------------------

void load(input& bytes) {
    const bool is_key = bytes.coin();
    const std::string_view text = bytes.rest();
    std::string detail;
    const std::string chain = directory + "/server.pem";
    const auto authorities = tls::context::client({.ca_pem = text}, &detail);
    const auto server =
        is_key ? tls::context::server({.certificate_chain_file = chain, .private_key_pem = text},
                                      &detail)
               : tls::context::server({.certificate_chain_pem = text, .private_key_pem = text},
                                      &detail);
    FUZZ_CHECK(server || server.error());
    FUZZ_CHECK(authorities || authorities.error() || text.empty());
}

} // namespace
} // namespace simplenet::v0::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet;
    using namespace simplenet::v0::fuzz;
    input bytes{data, size};
    event_loop& loop = shared_loop(backend::epoll);
    switch (bytes.byte() % 8) {
    case 0:
        run_on(loop, anything(bytes, false));
        break;
    case 1:
        run_on(loop, anything(bytes, true));
        break;
    case 2:
        load(bytes);
        break;
    default:
        run_on(loop, meddle(bytes));
    }
    return 0;
}
