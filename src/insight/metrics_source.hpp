#pragma once
// metrics_source: something other than a loop whose figures write_metrics() prints, such as a
// server. Layer insight, private.

#include <cstddef>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

class metrics_page;
class metrics_sources;

/// A member, or a base, of what has figures.
///
/// Any thread.
class metrics_source {
public:
    metrics_source(const metrics_source&) = delete;
    metrics_source& operator=(const metrics_source&) = delete;

    /// From here on its figures are printed. @pre not published.
    void publish();
    /// From the return on they are not; waits while they are. Later calls do nothing.
    ///
    /// Called before anything that write_to() uses is destroyed.
    void withdraw() noexcept;

    /// Adds the figures. Called on any thread, between publish() and withdraw(), under a lock: does
    /// not wait, and neither publishes nor withdraws.
    virtual void write_to(metrics_page& page) const = 0;

protected:
    metrics_source() noexcept = default;
    ~metrics_source() = default;

    /// Tells published sources apart, for a label: the lowest that was free.
    [[nodiscard]] std::size_t number() const noexcept { return number_; }

private:
    friend class metrics_sources;

    metrics_sources* published_in_ = nullptr; // the process's; a child of fork(2) has its own
    std::size_t number_ = 0;
};

/// Adds the figures of all published sources.
void write_sources(metrics_page& page);

} // namespace simplenet::v0::detail
