#pragma once
// session_store: sessions by a text that says who may resume them. Layer tls, private.

#include <simplenet/core/abi.hpp>

#include "tls/openssl.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace simplenet::v0::tls::detail {

/// Any thread.
class session_store {
public:
    explicit session_store(std::size_t most) noexcept
        : most_{most} {}

    /// Keeps a session; drops it if there is no memory.
    void put(std::string_view key, session_ptr session) noexcept;
    /// The session that was stored last and is still valid; null: none. One of TLS 1.3 is gone
    /// then.
    [[nodiscard]] session_ptr take(std::string_view key) noexcept;
    void clear() noexcept;
    [[nodiscard]] std::size_t size() const noexcept;

private:
    struct entry {
        std::string key;
        session_ptr session;
        std::uint64_t number; // in the order of put()
    };
    using entries = std::list<entry>;

    void drop(entries::iterator which) noexcept;

    const std::size_t most_;
    mutable std::mutex mutex_;
    entries entries_;                                                     // the oldest first
    std::unordered_multimap<std::string_view, entries::iterator> by_key_; // views of the entries
    std::uint64_t next_number_ = 0;
};

} // namespace simplenet::v0::tls::detail
