#pragma once
// inflater: decompresses gzip and deflate as they arrive. Layer http, private.

#include <simplenet/core/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace simplenet::v0::http::detail {

/// Decompresses one body. Verifies the checksums.
///
/// gzip is one member or several (RFC 1952, section 2.2). deflate is the zlib format (RFC 9110,
/// section 8.4.1.2), or the bare format that some servers send in its place.
class inflater {
public:
    enum class format : std::uint8_t { gzip, deflate };
    struct step {
        std::size_t consumed = 0;
        std::size_t produced = 0;
        bool malformed = false;
    };

    explicit inflater(format of) noexcept;
    inflater(const inflater&) = delete;
    inflater& operator=(const inflater&) = delete;
    ~inflater();

    /// Decompresses until `from` is consumed, `into` is full, or it is malformed. With an empty
    /// `from`, gives what earlier calls had no room for. Throws std::bad_alloc.
    ///
    /// @pre `into` is not empty.
    [[nodiscard]] step next(const_buffer from, mutable_buffer into);

    /// Whether the data may end here: behind a whole stream, or before the first byte.
    [[nodiscard]] bool is_complete() const noexcept;

private:
    struct zlib;

    bool take_beginning(std::byte byte);

    // gzip      the first member has not begun
    // deflate   its format is not known: the first two bytes decide
    // running   within a stream
    // between   behind a member of gzip, before another one or the end
    // ended     behind the stream of deflate
    enum class phase : std::uint8_t { gzip, deflate, running, between, ended };

    std::unique_ptr<zlib> zlib_; // null until the first byte
    const bool is_gzip_;
    bool has_first_ = false;
    std::byte first_{}; // of deflate
    phase phase_;
};

} // namespace simplenet::v0::http::detail
