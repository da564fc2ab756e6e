#pragma once
// Sockets whose operations are awaited, connecting, names: all of layer net.

#include <simplenet/net/async_listener.hpp>
#include <simplenet/net/connect.hpp>
#include <simplenet/net/local_datagram.hpp>
#include <simplenet/net/local_listener.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/resolve.hpp>
#include <simplenet/net/tcp_listener.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/net/udp_socket.hpp>
