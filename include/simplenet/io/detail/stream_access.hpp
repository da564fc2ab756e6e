#pragma once
// stream_access: the access to streams that the library's algorithms have and users do not. Layer
// io, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/write_options.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace simplenet::v0::detail {
// The library's own: not exported, since it is first named here.
struct socket_record;
} // namespace simplenet::v0::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Who knows that nothing can be read from a stream.
enum class silence : std::uint8_t {
    by_last_poll, // of the loop, if it watches the stream; otherwise the kernel
    by_kernel,    // which is asked now
};

/// A friend of the library's streams. A stream that has a better way than read_some() and
/// write_some() has a private member of the same name. Without that member the function here does
/// not take part in overload resolution, and the algorithm uses read_some() and write_some().
struct stream_access {
    /// A `Stream` that takes over the record another handle gave away.
    template <class Stream>
    [[nodiscard]] static Stream make(socket_record& given) noexcept {
        return Stream{given};
    }

    /// The record of a stream, or null after a move.
    template <class Stream>
    [[nodiscard]] static socket_record* record_of(Stream& stream) noexcept {
        return stream.record();
    }

    /// The whole transfer as one operation: async_read_exact() and async_write_all().
    template <class Stream>
    [[nodiscard]] static auto read_exact_operation(Stream& stream, mutable_buffer into)
        requires requires { stream.read_exact_operation(into); }
    {
        return stream.read_exact_operation(into);
    }
    template <class Stream, class Buffers>
    [[nodiscard]] static auto write_all_operation(Stream& stream, const Buffers& from,
                                                  write_options options = {})
        requires requires { stream.write_all_operation(from, options); }
    {
        return stream.write_all_operation(from, options);
    }
    /// sendfile(2), for async_send_file().
    template <class Stream, class Options>
    [[nodiscard]] static auto send_file_operation(Stream& stream, int file, std::uint64_t offset,
                                                  std::uint64_t count, const Options& options)
        requires requires { stream.send_file_operation(file, offset, count, options); }
    {
        return stream.send_file_operation(file, offset, count, options);
    }

    /// Whether nothing can be read: no bytes, no end, no error. If false, close the stream: what
    /// was found may be gone.
    template <class Stream>
    [[nodiscard]] static bool is_silent(const Stream& stream, silence by)
        requires requires { stream.is_silent(by); }
    {
        return stream.is_silent(by);
    }

    // For async_copy(), and for streams over streams.

    /// Whether read_ready() takes bytes from the kernel: the loop does not receive ahead, so that
    /// bytes would be copied.
    template <class Stream>
    [[nodiscard]] static bool is_read_directly(const Stream& stream)
        requires requires { stream.is_read_directly(); }
    {
        return stream.is_read_directly();
    }
    /// Bytes that are there already, or operation_would_block.
    template <class Stream>
    [[nodiscard]] static auto read_ready(Stream& stream, mutable_buffer into)
        requires requires { stream.read_ready(into); }
    {
        return stream.read_ready(into);
    }
    /// The same, moved into the empty pipe `into`. Does not report the end of the stream.
    template <class Stream>
    [[nodiscard]] static auto splice_ready(Stream& stream, int into, std::size_t most)
        requires requires { stream.splice_ready(into, most); }
    {
        return stream.splice_ready(into, most);
    }
    /// Writes `count` bytes from the pipe `from`.
    template <class Stream>
    [[nodiscard]] static auto send_pipe_operation(Stream& stream, int from, std::size_t count)
        requires requires { stream.send_pipe_operation(from, count); }
    {
        return stream.send_pipe_operation(from, count);
    }
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
