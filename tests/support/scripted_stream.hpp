#pragma once
// scripted_stream: streams that are not sockets, and follow a script of the test.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/stream/queued_writer.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {

/// The instructions for a scripted stream, and what it has observed.
struct script {
    std::size_t piece = 1U << 30U; // accepts at most so many bytes at a time
    std::size_t room = 1U << 30U;  // and waits after so many in total
    std::error_code error;         // of every write from here on
    bool throws = false;
    std::string written;
    std::vector<std::size_t> buffers; // of each write
    std::vector<const std::byte*> addresses;
    bool closed = false;
    bool half_closed = false;
    int alive = 0;

    void make_room(std::size_t bytes) { room = written.size() + bytes; }
};

/// A foreign stream that accepts one buffer at a time.
class plain_stream {
public:
    explicit plain_stream(script& of)
        : script_{&of} {
        ++of.alive;
    }
    plain_stream(plain_stream&& other) noexcept
        : script_{std::exchange(other.script_, nullptr)} {}
    plain_stream& operator=(plain_stream&&) = delete;
    ~plain_stream() {
        if (script_ != nullptr) --script_->alive;
    }

    task<result<std::size_t>> write_some(const_buffer from) {
        const std::vector<const_buffer> one{from};
        co_return co_await write(one);
    }

protected:
    task<result<std::size_t>> write(std::vector<const_buffer> from) {
        script& to = *script_;
        while (to.room <= to.written.size() && !to.error && !to.throws) {
            if (co_await this_task::stop_requested()) co_return fail(std::errc::operation_canceled);
            co_await yield();
        }
        if (to.throws) throw std::runtime_error{"a stream that throws"};
        if (to.error) co_return fail(to.error);
        to.buffers.push_back(from.size());
        std::size_t left = std::min(to.piece, to.room - to.written.size());
        std::size_t count = 0;
        for (const const_buffer& each : from) {
            const std::size_t size = std::min(left, each.size());
            if (size == 0) break;
            to.addresses.push_back(each.data());
            to.written.append(reinterpret_cast<const char*>(each.data()), size);
            left -= size;
            count += size;
        }
        co_return count;
    }

    script* script_;
};

class rich_stream : public plain_stream {
public:
    using plain_stream::plain_stream;

    task<result<std::size_t>> write_some(const_buffer from) {
        const std::vector<const_buffer> one{from};
        co_return co_await write(one);
    }
    task<result<std::size_t>> write_some(std::span<const const_buffer> from) {
        const std::vector<const_buffer> all{from.begin(), from.end()};
        co_return co_await write(all);
    }
    task<result<>> shutdown_write() {
        co_await yield();
        script_->half_closed = true;
        co_return result<>{};
    }
    void close() { script_->closed = true; }
};

/// Marks that a few bytes exceed.
inline constexpr watermarks small_marks{.low = 4, .high = 8, .limit = 16};

} // namespace simplenet::v0::testing
