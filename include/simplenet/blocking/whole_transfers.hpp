#pragma once
// blocking::whole_transfers: what only a stream that waits can do. Layer blocking.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/core/write_options.hpp>

#include <span>

#pragma GCC visibility push(default)

namespace simplenet::v0::blocking {

/// Reading and writing of whole buffers, waiting as often as that takes.
///
/// `Self` is the derived class.
template <class Self>
class whole_transfers {
public:
    /// Fills `into`; succeeds at once if it is empty.
    ///
    /// @return `into.size()`, or the error of `read_some()` with the number of bytes that came
    ///         before it; those are in `into`.
    [[nodiscard]] transfer_result read_exact(mutable_buffer into) noexcept;

    /// Writes all of `from`; succeeds at once if it is empty.
    ///
    /// @return `from.size()`, or the error of `write_some()` with the number of bytes that the
    ///         kernel took before it.
    [[nodiscard]] transfer_result write_all(const_buffer from, write_options options = {}) noexcept;
    /// The same for any number of buffers, as if they were one.
    [[nodiscard]] transfer_result write_all(std::span<const const_buffer> from,
                                            write_options options = {}) noexcept;
};

} // namespace simplenet::v0::blocking

#pragma GCC visibility pop
