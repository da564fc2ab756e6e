#include <simplenet/io/detail/descriptor_operations.hpp>

#include "io/attempts.hpp"
#include "socket/streams.hpp"

#include <cstddef>
#include <utility>

namespace simplenet::v0::detail {

// The descriptors travel with the first byte; the rest is a write like any other.
bool send_descriptors_operation::perform() noexcept {
    if (moved == 0) {
        if (descriptors().size() > most_descriptors) {
            error = -static_cast<int>(errc::limit_exceeded);
            return true;
        }
        const ssize_t count = streams::send_descriptors(record->fd, {data, size}, descriptors());
        if (count < 0) return send_failed(*this, count);
        moved = static_cast<std::size_t>(count);
    }
    return attempt_send_one(*this);
}

const char* send_descriptors_operation::name() const noexcept {
    return "send_descriptors";
}

bool receive_descriptors_operation::perform() noexcept {
    if (record->end != 0) { // found by readable()
        error = std::exchange(record->end, 0);
        return true;
    }
    const ssize_t count =
        streams::receive_descriptors(record->fd, {data, size}, most_, came_, refused_);
    if (count <= 0) return receive_failed(*this, count);
    moved = static_cast<std::size_t>(count);
    return true;
}

const char* receive_descriptors_operation::name() const noexcept {
    return "receive_descriptors";
}

} // namespace simplenet::v0::detail
