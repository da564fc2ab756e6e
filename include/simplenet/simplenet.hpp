#pragma once
// All of libsimplenet except its optional components.

#include <simplenet/blocking.hpp>
#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/unique_fd.hpp>
#include <simplenet/coro.hpp>
#include <simplenet/insight/dump_tasks.hpp>
#include <simplenet/insight/stall_report.hpp>
#include <simplenet/io/readiness.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/ip/address_family.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/net.hpp>
#include <simplenet/nonblocking.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/runtime/run_on.hpp>
#include <simplenet/runtime/signal_set.hpp>
#include <simplenet/stream.hpp>
#include <simplenet/sync.hpp>
#include <simplenet/threads/cross_channel.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>
