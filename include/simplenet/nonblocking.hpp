#pragma once
// All of layer nonblocking: sockets that never wait.

#include <simplenet/nonblocking/local_datagram.hpp>
#include <simplenet/nonblocking/local_listener.hpp>
#include <simplenet/nonblocking/local_stream.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/nonblocking/tcp_stream.hpp>
#include <simplenet/nonblocking/udp_socket.hpp>
