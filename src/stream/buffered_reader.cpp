#include <simplenet/stream/buffered_reader.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace simplenet::v0::detail {

namespace {

constexpr std::size_t first_capacity = 4096;
// Reading less than this at once costs more in system calls than moving bytes does.
constexpr std::size_t least_room = 512;
// Larger buffers are not kept for the next message: one long line must not cost a connection its
// megabyte for ever.
constexpr std::size_t most_kept_empty = std::size_t{64} * 1024;

} // namespace

mutable_buffer read_buffer::prepare(std::size_t wanted) {
    if (begin_ == end_) {
        begin_ = end_ = 0;
        if (capacity_ > most_kept_empty) {
            memory_.reset();
            grown_before_ = std::exchange(capacity_, 0);
        }
    }
    const std::size_t room = std::clamp(wanted, std::size_t{1}, least_room);
    if (capacity_ - end_ < room) {
        const std::size_t held = size();
        if (begin_ >= held && capacity_ - held >= room) {
            std::memmove(memory_.get(), memory_.get() + begin_, held);
        } else {
            std::size_t capacity = std::max(first_capacity, 2 * (held + room));
            if (capacity > first_capacity) capacity = std::max(capacity, grown_before_);
            auto memory = std::make_unique_for_overwrite<std::byte[]>(capacity);
            if (held != 0) std::memcpy(memory.get(), memory_.get() + begin_, held);
            memory_ = std::move(memory);
            capacity_ = capacity;
        }
        begin_ = 0;
        end_ = held;
    }
    return {memory_.get() + end_, capacity_ - end_};
}

std::string_view pass_store::bytes() const noexcept {
    const std::span<const std::byte> held =
        passed_ != 0 ? std::span<const std::byte>{into_.data(), passed_} : buffer_->bytes();
    return {reinterpret_cast<const char*>(held.data()), held.size()};
}

std::size_t pass_store::give(const search_verdict&) const noexcept {
    if (passed_ != 0) return passed_;
    const std::size_t count = std::min(into_.size(), buffer_->size());
    std::memcpy(into_.data(), buffer_->bytes().data(), count);
    buffer_->consume(count);
    return count;
}

} // namespace simplenet::v0::detail
