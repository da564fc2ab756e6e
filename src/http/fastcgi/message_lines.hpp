#pragma once
// message_lines: what a backend writes for people, line by line. Layer http, private.

#include <simplenet/http/backend.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Cuts the standard error of an application into lines, for a gateway_reporter.
///
/// Longer lines are cut, and a request that writes too much is silenced, so that a flood costs
/// neither memory nor room in a log.
class message_lines {
public:
    static constexpr std::size_t longest = 2048;
    static constexpr std::size_t most = std::size_t{64} * 1024;

    message_lines(gateway_reporter report, void* context) noexcept
        : report_{report}
        , context_{context} {}
    message_lines(const message_lines&) = delete;
    message_lines& operator=(const message_lines&) = delete;
    ~message_lines() = default;

    /// @param backend  As backend::address.
    void add(std::string_view text, std::string_view backend) {
        if (report_ == nullptr) return;
        while (!text.empty() && told_ <= most) {
            if (!line_) line_ = std::make_unique<std::array<char, longest>>();
            const std::size_t end = text.find('\n');
            const std::string_view part = text.substr(0, end);
            const std::size_t count = std::min(part.size(), longest - held_);
            std::memcpy(line_->data() + held_, part.data(), count);
            held_ += count;
            if (end == std::string_view::npos) return;
            text.remove_prefix(end + 1);
            tell(backend);
        }
    }
    /// The last line need not have an end.
    void end(std::string_view backend) noexcept {
        if (held_ != 0) tell(backend);
    }

private:
    void tell(std::string_view backend) noexcept {
        std::string_view line{line_->data(), held_};
        if (line.ends_with('\r')) line.remove_suffix(1);
        told_ += held_ + 1;
        held_ = 0;
        if (told_ > most) line = "(further messages of this request are left out)";
        if (line.empty()) return;
        report_({.kind = gateway_event::message, .backend = backend, .text = line}, context_);
    }

    gateway_reporter report_;
    void* context_;
    std::unique_ptr<std::array<char, longest>> line_;
    std::size_t held_ = 0; // bytes of the line
    std::size_t told_ = 0;
};

} // namespace simplenet::v0::http::detail
