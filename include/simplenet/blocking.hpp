#pragma once
// All of layer blocking: sockets that block in the system call.

#include <simplenet/blocking/local_datagram.hpp>
#include <simplenet/blocking/local_listener.hpp>
#include <simplenet/blocking/local_stream.hpp>
#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/blocking/udp_socket.hpp>
#include <simplenet/blocking/whole_transfers.hpp>
