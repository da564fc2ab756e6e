#pragma once
// passage: one request through a reverse proxy. Layer http, private.

#include "http/client/client_exchange.hpp"
#include "http/gateway/backend_search.hpp"
#include "http/gateway/backend_set.hpp"
#include "http/gateway/spooled_body.hpp"
#include "http/proxy/proxy_core.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/connection_pool.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace simplenet::v0::http::detail {

/// The body of a request, which is passed on while it arrives.
class passing_body {
public:
    explicit passing_body(request& of) noexcept
        : of_{of} {}

    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into) {
        has_begun_ = true;
        return of_.read_some(into);
    }
    /// Whether a part may be gone.
    [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }

private:
    request& of_;
    bool has_begun_ = false;
};

/// Asks backends, one after the other, until one answers, and passes its answer on.
///
/// Nothing is set in the response before it is certain that the answer leaves, so that the caller
/// can still answer by itself.
class passage final : private connection_keeper {
public:
    passage(std::shared_ptr<const proxy_core> core, request& asked, response& answer)
        : core_{std::move(core)}
        , asked_{asked}
        , answer_{answer} {}
    passage(const passage&) = delete;
    passage& operator=(const passage&) = delete;
    ~passage() = default;

    /// As proxy_handler::attempt().
    [[nodiscard]] now_or_task<result<unsigned>> run();

private:
    // --- passage.cpp: the request, and who gets it ---
    [[nodiscard]] task<result<unsigned>> run_spooled(std::string_view directory);
    [[nodiscard]] task<result<unsigned>> try_backends();
    /// Judges a request that got no answer. Nothing: another backend may be asked.
    [[nodiscard]] result<std::optional<unsigned>> judge_failure(std::error_code why, bool was_kept);
    [[nodiscard]] bool can_repeat() const noexcept;
    void find_handshake();
    [[nodiscard]] exchange_request message();
    void note_failure(std::string_view doing, std::error_code why);

    // --- of connection_keeper ---
    void keep(pooled<any_stream> connection) override;
    void closed() noexcept override;
    void broke_off() noexcept override;
    /// An answer has come. It may be over already, and the connection with another request.
    void note_answer() noexcept;

    // --- pass_answer.cpp: the answer ---
    [[nodiscard]] now_or_task<result<unsigned>> pass_answer();
    [[nodiscard]] bool is_good_answer() const noexcept;
    /// The fields of the answer that the program has set for itself; empty: none of them.
    [[nodiscard]] std::vector<bool> fields_set_before() const;
    void set_answer();
    [[nodiscard]] task<result<unsigned>> pass_chunked();
    /// What is left of the body, behind the head, or in one write with it.
    [[nodiscard]] task<result<unsigned>> pass_body();
    /// What is left of the body, while it arrives.
    ///
    /// @param head_first  The head leaves before the first byte is there.
    /// @param memory      Its first `size` bytes come first.
    [[nodiscard]] task<result<unsigned>> pass_on_at_once(bool head_first, scratch memory,
                                                         std::size_t size);
    [[nodiscard]] task<result<unsigned>> pass_upgrade();
    [[nodiscard]] unsigned refuse_answer(std::error_code why);
    [[nodiscard]] std::error_code cut_answer(std::error_code why);

    const std::shared_ptr<const proxy_core> core_;
    request& asked_;
    response& answer_;
    std::shared_ptr<proxy_connections> connections_;

    // --- the request ---
    std::string_view key_; // of a WebSocket; empty: none is asked for
    spooled_body* spooled_ = nullptr;
    std::optional<passing_body> passing_;

    // --- the backend ---
    std::optional<backend_lease> lease_; // none: it is done with this request
    bool is_noted_ = false;              // that it has answered
    std::string_view backend_;           // its name
    unsigned failure_ = 502;             // of the last one
    std::optional<client_exchange> exchange_;
};

} // namespace simplenet::v0::http::detail
