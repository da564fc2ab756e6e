#pragma once
// scenario_parts: common parts of scenarios. Only for their sources.

#include "simulation/content.hpp"
#include "simulation/simulation.hpp"

#include <simplenet/simplenet.hpp>

#include <optional>
#include <span>
#include <system_error>

namespace simplenet::v0::simulation {

[[nodiscard]] endpoint server_address();

/// Partitions and heals the network from time to time, until it is stopped.
task<> cut_now_and_then(world& in);

struct pair_of_streams {
    std::optional<tcp_stream> client;
    std::optional<tcp_stream> server;
};

/// A connection of two hosts.
task<result<pair_of_streams>> connected(world& in);

[[nodiscard]] bool is_loss_of_the_connection(std::error_code error);

// Each function has a source of its own: scenarios_<subject>.cpp.
[[nodiscard]] std::span<const scenario> connection_scenarios() noexcept;
[[nodiscard]] std::span<const scenario> transfer_scenarios() noexcept;
[[nodiscard]] std::span<const scenario> datagram_scenarios() noexcept;
[[nodiscard]] std::span<const scenario> loop_scenarios() noexcept;

} // namespace simplenet::v0::simulation
