#include <simplenet/stream/copy.hpp>

#include "sys/calls.hpp"

#include <utility>

namespace simplenet::inline v0::detail {

namespace {

// One a thread: copies wait for their streams without it, so that a few are in use at a time.
constinit thread_local std::unique_ptr<std::byte[]> spare_block;

struct pipe_ends {
    unique_fd in;
    unique_fd out;
};
thread_local pipe_ends spare_pipe;

} // namespace

copy_block::copy_block()
    : memory_{std::move(spare_block)} {
    if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(capacity);
}

copy_block::~copy_block() {
    if (!spare_block) spare_block = std::move(memory_);
}

copy_pipe::copy_pipe() noexcept
    : in_{std::move(spare_pipe.in)}
    , out_{std::move(spare_pipe.out)} {
    if (in_) return;
    int ends[2] = {-1, -1};
    const int made = sys::pipe(ends, capacity);
    unique_fd out{ends[0]};
    unique_fd in{ends[1]};
    if (made != 0) return;
    out_ = std::move(out);
    in_ = std::move(in);
}

copy_pipe::~copy_pipe() {
    if (held_ != 0 || spare_pipe.in || !in_) return;
    spare_pipe.in = std::move(in_);
    spare_pipe.out = std::move(out_);
}

} // namespace simplenet::inline v0::detail
