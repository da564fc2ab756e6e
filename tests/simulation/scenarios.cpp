// The scenarios: small programs in which everything happens that a seed can produce, and the
// promises that must hold nevertheless.

#include "simulation/scenario_parts.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace simplenet::v0::simulation {

using namespace std::chrono_literals;

endpoint server_address() {
    return or_throw(endpoint::parse("10.0.0.2:7000"));
}

task<> cut_now_and_then(world& in) {
    if (in.random.chance(600)) co_return;
    for (;;) {
        const auto fair = co_await async_sleep(in.some_time(20ms));
        if (!fair) break;
        in.net.part("10.0.0.1", "10.0.0.2");
        const auto foul = co_await async_sleep(in.some_time(50ms));
        if (!foul) break;
        in.net.heal();
    }
    in.net.heal();
}

task<result<pair_of_streams>> connected(world& in) {
    auto listener = or_throw(tcp_listener::bind(server_address()));
    auto pending = spawn(async_connect(server_address()));
    auto accepted = co_await listener.accept();
    auto made = co_await pending;
    in.expect(accepted.has_value(), "a listener accepts");
    in.expect(made.has_value(), "a connect to a listener succeeds");
    if (!accepted || !made) co_return fail(std::errc::not_connected);
    co_return pair_of_streams{*std::move(made), *std::move(accepted)};
}

bool is_loss_of_the_connection(std::error_code error) {
    return error == std::errc::connection_reset || error == std::errc::broken_pipe ||
           error == std::errc::not_connected || error == errc::end_of_stream;
}

std::span<const scenario> scenarios() noexcept {
    static const std::vector<scenario> all = [] {
        std::vector<scenario> joined;
        for (const auto some : {connection_scenarios(), transfer_scenarios(), datagram_scenarios(),
                                loop_scenarios()}) {
            joined.insert(joined.end(), some.begin(), some.end());
        }
        return joined;
    }();
    return all;
}

} // namespace simplenet::v0::simulation
