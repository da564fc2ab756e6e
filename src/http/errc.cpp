#include <simplenet/http/errc.hpp>

#include <string>

namespace simplenet::v0::http {

namespace {

class category final : public std::error_category {
public:
    const char* name() const noexcept override { return "simplenet.http"; }

    std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
        case errc::bad_request:
            return "bad HTTP request";
        case errc::header_too_large:
            return "HTTP header too large";
        case errc::body_too_large:
            return "HTTP body too large";
        case errc::unsupported_transfer_coding:
            return "unsupported transfer coding";
        case errc::bad_response:
            return "bad HTTP response";
        case errc::incomplete_message:
            return "the connection ended before the HTTP message did";
        case errc::too_many_redirects:
            return "too many redirects";
        case errc::bad_url:
            return "bad URL";
        case errc::gateway_failed:
            return "gateway failed";
        case errc::websocket_protocol:
            return "WebSocket protocol error";
        }
        return "unknown HTTP error " + std::to_string(value);
    }

    std::error_condition default_error_condition(int value) const noexcept override {
        switch (static_cast<errc>(value)) {
        case errc::bad_request:
        case errc::bad_response:
        case errc::unsupported_transfer_coding:
        case errc::websocket_protocol:
            return std::make_error_condition(std::errc::protocol_error);
        case errc::bad_url:
            return std::make_error_condition(std::errc::invalid_argument);
        default:
            return {value, *this};
        }
    }
};

} // namespace

const std::error_category& error_category() noexcept {
    static const category instance;
    return instance;
}

} // namespace simplenet::v0::http
