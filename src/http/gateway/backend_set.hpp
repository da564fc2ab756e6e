#pragma once
// backend_set: the backends of a gateway, and which of them is next. Layer http, private. Shared by
// the loops.

#include "http/server/fair_places.hpp"

#include <simplenet/http/backend.hpp>
#include <simplenet/ip/local_endpoint.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace simplenet::v0::http::detail {

/// A name or address, and a port.
struct tcp_address {
    std::string host; // an IPv6 address without its brackets
    std::uint16_t port = 0;
};
/// Where a backend listens.
using backend_address = std::variant<tcp_address, local_endpoint>;

/// Nothing: not the address of a backend. Throws std::bad_alloc.
[[nodiscard]] std::optional<backend_address> parse_backend_address(std::string_view text);

/// Throws std::system_error with `std::errc::invalid_argument`; `what` names the option.
[[noreturn]] void refuse_option(std::string_view what);

class backend_set;

/// A request in progress at a backend. Counts as one of its active requests until end() or its
/// destruction.
/// Movable. Outlived by its backend_set.
class [[nodiscard]] backend_lease {
public:
    using clock = std::chrono::steady_clock;

    backend_lease(backend_lease&& other) noexcept
        : set_{std::exchange(other.set_, nullptr)}
        , index_{other.index_}
        , is_trial_{other.is_trial_}
        , waits_{other.waits_}
        , has_ended_{other.has_ended_}
        , place_{std::move(other.place_)} {}
    backend_lease& operator=(backend_lease&& other) noexcept {
        if (this != &other) {
            release();
            set_ = std::exchange(other.set_, nullptr);
            index_ = other.index_;
            is_trial_ = other.is_trial_;
            waits_ = other.waits_;
            has_ended_ = other.has_ended_;
            place_ = std::move(other.place_);
        }
        return *this;
    }
    ~backend_lease() { release(); }

    /// Of the backend in its set.
    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    /// As the program wrote it. Lives as long as the set.
    [[nodiscard]] std::string_view name() const noexcept;
    [[nodiscard]] const backend_address& address() const noexcept;

    /// The request is the first one on its connection, and waits for an answer: a backend with a
    /// process for each connection, such as PHP-FPM, may have none left for it. Until succeeded(),
    /// failed(), or the end.
    void waits_on_new() noexcept;
    /// Whether requests have waited so for that long, on any loop. A hint: sampled only
    /// when called, and it assumes that the backend serves in the order of arrival.
    [[nodiscard]] bool
    do_others_wait(clock::time_point now,
                   std::chrono::nanoseconds for_so_long = patience) const noexcept;
    /// Long for a hello of PHP (0.1 ms), short for a client.
    static constexpr std::chrono::milliseconds patience{5};

    /// The backend has begun to answer.
    ///
    /// @return Whether it had been left out, and is in use again.
    bool succeeded() noexcept;
    /// The backend has failed: it is left out for a while.
    ///
    /// @return Whether it had been in use.
    bool failed(clock::time_point now = clock::now()) noexcept;
    /// The backend is done with the request, which is not active any more.
    ///
    /// @pre Its connection, if it has one, has been given back or closed: the next request may get
    ///      its place.
    void end() noexcept;
    /// For a connection, on the loop that has this lease. None until a connection is borrowed.
    [[nodiscard]] fair_places::place& place() noexcept { return place_; }
    [[nodiscard]] const fair_places::place& place() const noexcept { return place_; }

private:
    friend backend_set;
    backend_lease(const backend_set& set, std::size_t index, bool is_trial) noexcept
        : set_{&set}
        , index_{index}
        , is_trial_{is_trial} {}
    void release() noexcept;
    void waits_no_more() noexcept;

    const backend_set* set_; // null after a move
    std::size_t index_;
    bool is_trial_;      // the outcome is owed to those who leave the backend out meanwhile
    bool waits_ = false; // counted by its backend
    bool has_ended_ = false;
    fair_places::place place_;
};

/// Some of the backends of a set, such as those that a request has tried.
class backend_marks {
public:
    [[nodiscard]] bool has(std::size_t index) const noexcept { return (bits_ >> index & 1) != 0; }
    void add(std::size_t index) noexcept { bits_ |= std::uint64_t{1} << index; }
    [[nodiscard]] bool empty() const noexcept { return bits_ == 0; }
    [[nodiscard]] backend_marks with(const backend_marks& more) const noexcept {
        backend_marks all;
        all.bits_ = bits_ | more.bits_;
        return all;
    }

private:
    std::uint64_t bits_ = 0; // most_backends of them
};

/// Chooses backends, and remembers which have failed.
///
/// Promises:
/// * pick() chooses the backend with the fewest active requests for its weight; equal ones take
///   turns in proportion to their weights. A full one in use is chosen only if all in use are full.
/// * A backend that failed() is not chosen for `retry_after`. Then a single request tries it, while
///   the others still leave it out; succeeded() puts it in use.
/// * If all backends are left out, the one that failed longest ago is chosen. So pick() finds none
///   only if the request has tried them all.
///
/// The counts are exact; a choice is made by those of a moment, which other loops change. Any
/// thread, without a lock.
class backend_set {
public:
    using clock = backend_lease::clock;

    /// @param backends  Copied. Throws std::system_error with `std::errc::invalid_argument` and the
    ///                  address if there is none, or more than most_backends, or one that is not
    ///                  well-formed, or a weight out of range.
    explicit backend_set(std::span<const backend> backends,
                         std::chrono::nanoseconds retry_after = std::chrono::seconds{10});
    backend_set(const backend_set&) = delete;
    backend_set& operator=(const backend_set&) = delete;
    ~backend_set();

    /// Nothing: the request has tried every backend. Otherwise adds the choice to `tried`.
    ///
    /// @param full  Backends at which the request would have to wait for a connection.
    [[nodiscard]] std::optional<backend_lease> pick(backend_marks& tried,
                                                    clock::time_point now = clock::now(),
                                                    backend_marks full = {}) const noexcept;

    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] const backend_address& address(std::size_t index) const noexcept;
    [[nodiscard]] std::vector<backend_status> status(clock::time_point now = clock::now()) const;

private:
    friend backend_lease;

    struct entry;

    [[nodiscard]] const entry& at(std::size_t index) const noexcept;
    /// Of those in use and not left out by `but`; count_: none.
    [[nodiscard]] std::size_t least_busy(const backend_marks& but) const noexcept;

    // The entries change, whoever looks at the set.
    std::unique_ptr<entry[]> entries_; // NOLINT(modernize-avoid-c-arrays): atomics do not move
    std::size_t count_;
    std::chrono::nanoseconds retry_after_;
    std::uint64_t total_weight_ = 0;
    mutable std::atomic<std::uint64_t> turn_ = 0;
    mutable std::atomic<unsigned> out_ = 0; // about how many are left out: 0 saves a look at them
};

} // namespace simplenet::v0::http::detail
