#pragma once
// shared_room: what the answers of a gateway may occupy together, in memory or on a disk. Layer
// http, private.

#include <simplenet/core/abi.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace simplenet::v0::http::detail {

/// Room that the answers of a gateway share, on all loops. Any thread.
///
/// No answer takes more than it leaves to all others together. So answers that grow at the same
/// time share the room equally, and one that begins later can still have half of what is left:
/// A. K. Choudhury and E. L. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
/// Switches", 1998. What an answer has taken is its own until it gives it back, see room_share.
class shared_room {
public:
    /// @param bytes  In all.
    explicit shared_room(std::uint64_t bytes) noexcept
        : left_{bytes} {}

    /// @param has  What the same answer has taken.
    [[nodiscard]] bool take(std::uint64_t bytes, std::uint64_t has) noexcept;
    void give_back(std::uint64_t bytes) noexcept {
        left_.fetch_add(bytes, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t left() const noexcept {
        return left_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t> left_;
};

/// The part of a shared_room that one answer holds. The destructor gives it back.
class room_share {
public:
    /// @param of  null: nothing bounds the share.
    explicit room_share(std::shared_ptr<shared_room> of) noexcept
        : of_{std::move(of)} {}
    room_share(const room_share&) = delete;
    room_share& operator=(const room_share&) = delete;
    ~room_share() { shrink(bytes_); }

    /// Takes `bytes` more, or nothing if the room refuses.
    [[nodiscard]] bool grow(std::uint64_t bytes) noexcept {
        if (of_ && !of_->take(bytes, bytes_)) return false;
        bytes_ += bytes;
        return true;
    }
    /// @pre bytes <= this->bytes().
    void shrink(std::uint64_t bytes) noexcept {
        bytes_ -= bytes;
        if (of_) of_->give_back(bytes);
    }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

private:
    const std::shared_ptr<shared_room> of_;
    std::uint64_t bytes_ = 0;
};

/// Room on a disk, for which an answer can ask those that have more.
class disk_room : public shared_room {
public:
    using shared_room::shared_room;

    /// An answer has no room, and others wait for its backend.
    ///
    /// @param has  What it has taken.
    void ask_for_room(std::chrono::steady_clock::time_point now, std::uint64_t has) noexcept {
        // Those that have more ask on behalf of nobody while one with less does.
        if (is_asked_by_less(now, has)) return;
        asker_has_.store(has, std::memory_order_relaxed);
        asked_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
    /// Whether one that has less has asked a moment ago, so that this one should end if its client
    /// takes nothing. Else a single large answer could end all others.
    [[nodiscard]] bool is_asked_by_less(std::chrono::steady_clock::time_point now,
                                        std::uint64_t has) const noexcept {
        constexpr std::chrono::seconds moment{2}; // answers that wait ask each second
        const std::chrono::steady_clock::duration at{asked_at_.load(std::memory_order_relaxed)};
        return at != at.zero() && now.time_since_epoch() - at < moment &&
               asker_has_.load(std::memory_order_relaxed) < has;
    }

private:
    std::atomic<std::chrono::steady_clock::rep> asked_at_ = 0;
    std::atomic<std::uint64_t> asker_has_ = 0;
};

/// The room of a gateway's answers. null: no bound.
struct answer_room {
    std::shared_ptr<shared_room> memory{};
    std::shared_ptr<disk_room> disk{};
};

} // namespace simplenet::v0::http::detail
