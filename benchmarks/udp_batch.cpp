// Measures the cost of a datagram, sent and received on one thread over loopback: one at a time and
// in batches, on both backends, and one at a time with Boost.Asio if it is installed. All variants
// alternate, so that a disturbance affects all; the figures are processor time.
//
//     udp_batch [bytes = 64] [datagrams in flight = 64] [rounds = 21] [only = name of a way]

#include "median.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#if __has_include(<boost/asio.hpp>)
#include <boost/asio.hpp>
#define HAS_ASIO 1
#endif

using namespace simplenet;

namespace {

struct work {
    std::size_t bytes;
    std::size_t in_flight;
    std::size_t total; // datagrams
};

double seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

task<> one_by_one(work of) {
    auto from = or_throw(udp_socket::bind(endpoint::loopback(0)));
    auto to = or_throw(udp_socket::bind(endpoint::loopback(0)));
    const endpoint there = or_throw(to.local_endpoint());
    std::vector<std::byte> bytes(of.bytes);
    for (std::size_t done = 0; done < of.total; done += of.in_flight) {
        for (std::size_t at = 0; at < of.in_flight; ++at)
            or_throw(co_await from.send_to(bytes, there));
        for (std::size_t at = 0; at < of.in_flight; ++at)
            or_throw(co_await to.receive_from(bytes));
    }
}

task<> in_batches(work of) {
    auto from = or_throw(udp_socket::bind(endpoint::loopback(0)));
    auto to = or_throw(udp_socket::bind(endpoint::loopback(0)));
    const endpoint there = or_throw(to.local_endpoint());
    std::vector<std::byte> bytes(of.bytes);
    std::vector<std::byte> memory(of.bytes * of.in_flight);
    const std::vector<outgoing_datagram> out(of.in_flight, {.data = bytes, .to = there});
    std::vector<incoming_datagram> in(of.in_flight);
    for (std::size_t at = 0; at < of.in_flight; ++at)
        in[at].into = mutable_buffer{memory.data() + at * of.bytes, of.bytes};
    for (std::size_t done = 0; done < of.total; done += of.in_flight) {
        or_throw(co_await from.send_batch(out));
        for (std::size_t got = 0; got < of.in_flight;)
            got += or_throw(co_await to.receive_batch(in));
    }
}

task<> in_segments(work of) {
    auto from = or_throw(udp_socket::bind(endpoint::loopback(0)));
    auto to = or_throw(udp_socket::bind(endpoint::loopback(0)));
    or_throw(to.enable_gro());
    const endpoint there = or_throw(to.local_endpoint());
    std::vector<std::byte> bytes(of.bytes * of.in_flight);
    std::vector<std::byte> into(65'536);
    for (std::size_t done = 0; done < of.total; done += of.in_flight) {
        or_throw(co_await from.send_segmented(bytes, of.bytes, there));
        for (std::size_t got = 0; got < bytes.size();)
            got += or_throw(co_await to.receive_from(into)).size;
    }
}

#ifdef HAS_ASIO
namespace asio = boost::asio;

asio::awaitable<void> asio_one_by_one(work of) {
    using asio::ip::udp;
    const auto executor = co_await asio::this_coro::executor;
    udp::socket from{executor, {asio::ip::address_v4::loopback(), 0}};
    udp::socket to{executor, {asio::ip::address_v4::loopback(), 0}};
    const udp::endpoint there = to.local_endpoint();
    udp::endpoint sender;
    std::vector<std::byte> bytes(of.bytes);
    for (std::size_t done = 0; done < of.total; done += of.in_flight) {
        for (std::size_t at = 0; at < of.in_flight; ++at)
            co_await from.async_send_to(asio::buffer(bytes), there, asio::use_awaitable);
        for (std::size_t at = 0; at < of.in_flight; ++at)
            co_await to.async_receive_from(asio::buffer(bytes), sender, asio::use_awaitable);
    }
}

void asio_run(work of) {
    asio::io_context context{1};
    asio::co_spawn(context, asio_one_by_one(of), asio::detached);
    context.run();
}
#endif

struct way {
    std::string name;
    std::function<void(work)> go;
    std::vector<double> ns = {}; // per datagram, each round
};

} // namespace

int main(int argc, char** argv) {
    const auto argument = [&](int at, std::size_t otherwise) {
        return argc > at ? std::strtoul(argv[at], nullptr, 10) : otherwise;
    };
    const work of{.bytes = argument(1, 64), .in_flight = argument(2, 64), .total = 64 * 400};
    const std::size_t rounds = argument(3, 21);
    const std::string_view only = argc > 4 ? argv[4] : "";

    std::vector<way> ways;
#ifdef HAS_ASIO
    ways.push_back({"asio_one_by_one", asio_run});
#endif
    for (const backend which : {backend::epoll, backend::io_uring}) {
        if (!probe_backend(which)) continue;
        const std::string prefix{to_string(which)};
        const auto add = [&](const char* name, task<> (*body)(work)) {
            ways.push_back(
                {prefix + name, [=](work amount) { run(body(amount), {.backend = which}); }});
        };
        add("_one_by_one", one_by_one);
        add("_batch", in_batches);
        add("_segments", in_segments);
    }
    if (!only.empty()) std::erase_if(ways, [&](const way& each) { return each.name != only; });
    if (ways.empty()) return 1;

    for (std::size_t round = 0; round <= rounds; ++round) {
        for (way& each : ways) {
            const double before = seconds();
            each.go(of);
            const double spent = seconds() - before;
            if (round != 0) each.ns.push_back(1e9 * spent / static_cast<double>(of.total));
        }
    }

    std::printf("%zu bytes, %zu in flight, %zu rounds; median, and of each round's ratio to %s\n",
                of.bytes, of.in_flight, rounds, ways[0].name.c_str());
    for (const way& each : ways) {
        std::vector<double> faster;
        for (std::size_t round = 0; round < each.ns.size(); ++round)
            faster.push_back(ways[0].ns[round] / each.ns[round]);
        std::printf("%-22s %7.0f ns a datagram %10.0f a second   x %.2f (%.2f to %.2f)\n",
                    each.name.c_str(), bench::median(each.ns), 1e9 / bench::median(each.ns),
                    bench::median(faster), *std::ranges::min_element(faster),
                    *std::ranges::max_element(faster));
    }
}
