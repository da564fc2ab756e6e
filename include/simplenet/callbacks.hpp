#pragma once
// All of layer callbacks: for programs that come from muduo.

#include <simplenet/callbacks/buffer.hpp>
#include <simplenet/callbacks/client.hpp>
#include <simplenet/callbacks/connection.hpp>
#include <simplenet/callbacks/handlers.hpp>
#include <simplenet/callbacks/server.hpp>
#include <simplenet/callbacks/timers.hpp>
