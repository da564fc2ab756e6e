#include <simplenet/stream/copy.hpp>

namespace simplenet::detail {

namespace {

// One a thread: copies wait for their streams without it, so that a few are in use at a time.
constinit thread_local std::unique_ptr<std::byte[]> spare;

} // namespace

copy_block::copy_block()
    : memory_{std::move(spare)} {
    if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(capacity);
}

copy_block::~copy_block() {
    if (!spare) spare = std::move(memory_);
}

} // namespace simplenet::detail
