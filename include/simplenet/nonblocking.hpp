#pragma once
// Sockets that never wait: all of layer nonblocking.

#include <simplenet/nonblocking/local_datagram.hpp>
#include <simplenet/nonblocking/local_listener.hpp>
#include <simplenet/nonblocking/local_stream.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/nonblocking/tcp_stream.hpp>
#include <simplenet/nonblocking/udp_socket.hpp>
