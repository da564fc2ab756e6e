#pragma once
// All of layer net: sockets whose operations are awaited, connecting, names.

#include <simplenet/net/async_listener.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/local_datagram.hpp>
#include <simplenet/net/local_listener.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/resolve.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/net/udp_socket.hpp>
