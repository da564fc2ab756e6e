#pragma once
// The seam of the ring: carries out what sys/seam.hpp prescribes for entries, completions and
// buffers, as the kernel would. Layer io_uring, private; only with SIMPLENET_SEAMS.

#include "sys/seam.hpp"

#include <cstdint>
#include <vector>

#include <liburing.h>

namespace simplenet::v0::detail::uring {

struct completion;
class ring;

/// A part of a ring. Its allocations count as the test's, not as the library's.
class ring_seam {
public:
    explicit ring_seam(ring& of) noexcept
        : ring_{of} {}

    /// Shows the entries of the next enter to the interceptor.
    void show_entries() noexcept;
    /// The next completion to deliver.
    [[nodiscard]] bool next(completion& seen) noexcept;
    /// Whether completions are held here, so that the loop must not sleep.
    [[nodiscard]] bool holds() const noexcept { return !held_.empty() || !waiting_.empty(); }

private:
    /// An entry that was not submitted: a no-op was submitted in its place.
    struct replaced {
        std::uint64_t about;
        int outcome;
    };
    struct held {
        std::uint64_t about;
        int res;
        unsigned flags;
        unsigned passes; // to go
        bool shown;      // an interceptor has seen it
    };

    [[nodiscard]] bool take(held& next) noexcept;
    void end_multishot(held& last, int error) noexcept;
    void end_pass() noexcept;

    ring& ring_;
    std::vector<replaced> replaced_; // by number, for the user_data of the no-ops
    std::vector<held> held_;         // by an interceptor
    std::vector<held> waiting_;      // reaped by us, or held long enough: delivered next
};

} // namespace simplenet::v0::detail::uring
