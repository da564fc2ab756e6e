#pragma once
// send_file_options: what async_send_file() sends beside the file. Layer io.

#include <simplenet/core/buffer.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

inline namespace runtime {

/// What async_send_file() sends around the bytes of the file.
struct send_file_options {
    /// Before the file. Borrowed until the await returns.
    const_buffer head = {};
    /// After the file, however much of it there was. Borrowed until the await returns.
    const_buffer tail = {};
};

} // namespace runtime

} // namespace simplenet::v0

#pragma GCC visibility pop
