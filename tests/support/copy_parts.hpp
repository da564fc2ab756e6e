#pragma once
// copy_parts: what the tests of copying have in common.

#include "support/raw_peer.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <sys/socket.h>

namespace simplenet::v0::testing {

/// A foreign stream: small pieces, each in its own turn.
class piecemeal_stream {
public:
    explicit piecemeal_stream(std::string content, std::size_t room = 1U << 30U)
        : content_{std::move(content)}
        , room_{room} {}

    task<result<std::size_t>> read_some(mutable_buffer into) {
        co_await yield();
        if (at_ == content_.size()) co_return fail(errc::end_of_stream);
        const std::size_t count = std::min({std::size_t{7}, into.size(), content_.size() - at_});
        std::copy_n(content_.data() + at_, count, reinterpret_cast<char*>(into.data()));
        at_ += count;
        co_return count;
    }
    task<result<std::size_t>> write_some(const_buffer from) {
        co_await yield();
        if (written_.size() == room_) co_return fail(std::errc::no_buffer_space);
        const std::size_t count = std::min({std::size_t{5}, from.size(), room_ - written_.size()});
        written_.append(reinterpret_cast<const char*>(from.data()), count);
        co_return count;
    }
    task<result<>> shutdown_write() {
        ended_ = true;
        co_return result<>{};
    }
    [[nodiscard]] const std::string& written() const { return written_; }
    [[nodiscard]] bool ended() const { return ended_; }

private:
    std::string content_;
    std::size_t room_;
    std::size_t at_ = 0;
    std::string written_;
    bool ended_ = false;
};

/// Reads everything available to the peer; returns the number of bytes.
inline std::size_t readable_at(raw_peer& peer) {
    std::size_t total = 0;
    std::string scratch(1 << 20, '\0');
    for (;;) {
        const ssize_t count = ::recv(peer.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT);
        if (count <= 0) return total;
        total += static_cast<std::size_t>(count);
    }
}

} // namespace simplenet::v0::testing
