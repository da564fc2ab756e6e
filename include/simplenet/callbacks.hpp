#pragma once
// All of layer callbacks: for programs that come from muduo.

#include <simplenet/callbacks/buffer.hpp>
#include <simplenet/callbacks/timers.hpp>
