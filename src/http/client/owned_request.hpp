#pragma once
// owned_request: a request as a client keeps it, through redirects and repetitions. Layer http,
// private.

#include "http/client/exchange_request.hpp"
#include "http/codec/url.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/http/client_request.hpp>
#include <simplenet/http/fields.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

struct owned_request {
    std::string method;
    url to;
    std::string host;    // of the caller's own Host; empty: that of `to`
    http::fields fields; // the caller's, which can be sent, but for Host and Connection
    const_buffer body;   // borrowed
    async_reader_ref stream;
    std::optional<std::uint64_t> content_length; // of `stream`
    bool expect_continue = false;
    bool closes = false;       // the connection ends behind the answer
    bool decompresses = false; // the client's own Accept-Encoding leaves
    bool upgrades = false;     // the answer may be 101

    [[nodiscard]] bool has_stream() const noexcept { return static_cast<bool>(stream); }
    [[nodiscard]] bool has_body() const noexcept { return has_stream() || !body.empty(); }
    /// Whether sending it twice does no more than sending it once, and is possible.
    [[nodiscard]] bool is_repeatable() const noexcept;
};

/// Copies and judges a request.
///
/// @return errc::bad_url, or std::errc::invalid_argument.
[[nodiscard]] result<owned_request> take_request(const client_request& asked, bool decompress);

/// The request as it leaves.
[[nodiscard]] exchange_request message_of(const owned_request& asked, std::string_view user_agent);

/// Changes `asked` to what an answer redirects to.
///
/// @return False: the answer is no redirect, or one that cannot be followed; nothing has changed.
///         errc::bad_url; errc::bad_response: two Locations; std::errc::operation_not_permitted:
///         from https to http.
[[nodiscard]] result<bool> redirect(owned_request& asked, unsigned status,
                                    const http::fields& answer);

} // namespace simplenet::v0::http::detail
