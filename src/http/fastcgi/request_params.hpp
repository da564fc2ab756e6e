#pragma once
// request_params: a request as the records that begin it at a FastCGI backend. Layer http, private.

#include "http/fastcgi/settings.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/io/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace simplenet::v0::http::detail {

/// What a path means for the backend. Views of the path, or of text that lives as long.
struct script_path {
    std::string_view script; // SCRIPT_NAME
    std::string_view info;   // PATH_INFO
};

/// Bytes that grow, in memory of the loop. Usually without an allocation.
class growing_bytes {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] char* data() const noexcept { return reinterpret_cast<char*>(memory_.data()); }
    [[nodiscard]] const_buffer bytes() const noexcept { return {memory_.data(), size_}; }
    /// Room for `count` more bytes. Throws std::bad_alloc.
    [[nodiscard]] char* room(std::size_t count) {
        if (size_ + count > memory_.size()) grow(count);
        return data() + size_;
    }
    void took(std::size_t count) noexcept { size_ += count; }
    void append(std::string_view text);
    /// Whether `count` more bytes fit without growing.
    [[nodiscard]] bool fits(std::size_t count) const noexcept {
        return size_ + count <= memory_.size();
    }

private:
    void grow(std::size_t count);

    scratch memory_;
    std::size_t size_ = 0;
};

/// The records up to the body of `asked`: begin, and the variables.
///
/// @param body  Bytes; none: there is no body.
/// @param into  Empty.
void write_request(const fastcgi_settings& with, const request& asked, const script_path& path,
                   std::optional<std::uint64_t> body, growing_bytes& into);

} // namespace simplenet::v0::http::detail
