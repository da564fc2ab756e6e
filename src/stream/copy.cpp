#include <simplenet/stream/copy.hpp>

#include "sys/calls.hpp"

#include <atomic>
#include <utility>

namespace simplenet::v0::detail {

namespace {

// One per thread: copies do not hold it while they wait for their streams, so only a few are in use
// at a time.
constinit thread_local std::unique_ptr<std::byte[]> spare_block;

constinit std::atomic<int> pipes = 0; // of the process, including spare ones

struct pipe_to_spare {
    pipe_to_spare() = default;
    pipe_to_spare(const pipe_to_spare&) = delete;
    pipe_to_spare& operator=(const pipe_to_spare&) = delete;
    ~pipe_to_spare() {
        if (in) --pipes;
    }
    unique_fd in;
    unique_fd out;
};
thread_local pipe_to_spare spare_pipe;

} // namespace

copy_block::copy_block()
    : memory_{std::move(spare_block)} {
    if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(capacity);
}

void copy_block::give_back() noexcept {
    if (!spare_block) spare_block = std::move(memory_);
    memory_.reset();
}

copy_pipe::copy_pipe() noexcept
    : in_{std::move(spare_pipe.in)}
    , out_{std::move(spare_pipe.out)} {
    if (in_) return;
    if (pipes.fetch_add(1) < most) {
        int ends[2] = {-1, -1};
        const int made = sys::pipe(ends, capacity);
        unique_fd out{ends[0]};
        unique_fd in{ends[1]};
        if (made == 0) {
            out_ = std::move(out);
            in_ = std::move(in);
            return;
        }
    }
    --pipes;
}

copy_pipe::~copy_pipe() {
    if (!in_) return;
    if (held_ == 0 && !spare_pipe.in) {
        spare_pipe.in = std::move(in_);
        spare_pipe.out = std::move(out_);
    } else {
        --pipes;
    }
}

result<std::size_t> copy_pipe::read(mutable_buffer into) noexcept {
    return sys::to_count(sys::read_pipe(out(), into.data(), into.size()));
}

} // namespace simplenet::v0::detail
