#pragma once
// All of layer sync: locks, events and channels between coroutines.

#include <simplenet/sync/async_condition_variable.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/sync/async_mutex.hpp>
#include <simplenet/sync/async_semaphore.hpp>
#include <simplenet/sync/channel.hpp>
#include <simplenet/sync/oneshot.hpp>
