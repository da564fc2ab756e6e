#pragma once
// All of layer server: servers on every loop of a group.

#include <simplenet/server/basic_server.hpp>
#include <simplenet/server/inherited_listeners.hpp>
#include <simplenet/server/local_server.hpp>
#include <simplenet/server/run_server.hpp>
#include <simplenet/server/server_options.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/server/tcp_server.hpp>
