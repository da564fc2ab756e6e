#pragma once
// All of layer stream: algorithms over anything that reads and writes.

#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/backoff.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/close_lingering.hpp>
#include <simplenet/stream/connection_pool.hpp>
#include <simplenet/stream/copy.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/frame_format.hpp>
#include <simplenet/stream/frame_reader.hpp>
#include <simplenet/stream/frame_writer.hpp>
#include <simplenet/stream/hand_over.hpp>
#include <simplenet/stream/pool_options.hpp>
#include <simplenet/stream/queued_writer.hpp>
#include <simplenet/stream/read_until.hpp>
#include <simplenet/stream/send_file.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/tcp_client.hpp>
#include <simplenet/stream/transfer.hpp>
