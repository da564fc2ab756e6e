#include "httpd/status/traffic.hpp"

#include <algorithm>
#include <new>

namespace httpd {

namespace {

using counter = std::atomic<std::uint64_t>;

/// Only one thread writes a counter, so this is no atomic addition: it costs as much as a plain
/// one.
void add(counter& to, std::uint64_t value) noexcept {
    to.store(to.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

std::size_t class_of(unsigned status) noexcept {
    return status >= 100 && status < 600 ? status / 100 : 0;
}

std::uint64_t next_traffic_generation() noexcept {
    static std::atomic<std::uint64_t> latest = 0;
    return latest.fetch_add(1, std::memory_order_relaxed) + 1;
}

} // namespace

struct traffic::site_counters {
    std::string name;
    std::array<counter, 6> requests{};
    counter bytes = 0;
};

struct alignas(64) traffic::counters {
    // Sites come from configurations, of which there may be many in the life of a process.
    static constexpr std::size_t most_sites = 1024;

    std::array<counter, 6> requests{};
    counter bytes = 0;
    counter incomplete = 0;
    counter secure = 0;
    counter duration_sum = 0; // nanoseconds
    std::array<counter, duration_buckets::count> durations{};

    std::array<std::unique_ptr<site_counters>, most_sites> sites;
    std::atomic<std::size_t> site_count = 0; // those before it are complete, and stay
    site_counters* latest_site = nullptr;

    /// Null: there is no place or memory for another site.
    [[nodiscard]] site_counters* site(std::string_view name) noexcept {
        if (latest_site != nullptr && latest_site->name == name) return latest_site;
        const std::size_t count = site_count.load(std::memory_order_relaxed);
        const auto end = sites.begin() + static_cast<std::ptrdiff_t>(count);
        const auto found =
            std::find_if(sites.begin(), end, [&](const auto& each) { return each->name == name; });
        if (found != end) return latest_site = found->get();
        if (count == most_sites) return nullptr;
        try {
            auto made = std::make_unique<site_counters>();
            made->name = name;
            *found = std::move(made);
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        site_count.store(count + 1, std::memory_order_release);
        return latest_site = found->get();
    }

    void count(const access_entry& entry) noexcept {
        const std::size_t kind = class_of(entry.status);
        add(requests[kind], 1);
        add(bytes, entry.body_bytes);
        if (entry.secure) add(secure, 1);
        if (kind != 0) {
            if (!entry.complete) add(incomplete, 1);
            const auto duration = std::max(entry.duration, std::chrono::nanoseconds{0});
            add(durations[duration_buckets::index_of(duration)], 1);
            add(duration_sum, static_cast<std::uint64_t>(duration.count()));
        }
        if (entry.site.empty()) return;
        if (site_counters* const of = site(entry.site)) {
            add(of->requests[kind], 1);
            add(of->bytes, entry.body_bytes);
        }
    }
};

namespace {

// The counters belong to their traffic, so a thread that ends leaves nothing to do.
constinit thread_local std::uint64_t thread_generation = 0;
constinit thread_local void* thread_counters = nullptr;

} // namespace

traffic::traffic()
    : generation_{next_traffic_generation()} {}
traffic::~traffic() = default;

traffic::counters* traffic::make_counters() noexcept {
    try {
        auto made = std::make_unique<counters>();
        const std::lock_guard held{mutex_};
        all_.push_back(std::move(made));
        thread_generation = generation_;
        thread_counters = all_.back().get();
        return all_.back().get();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void traffic::count(const access_entry& entry) noexcept {
    counters* const mine = thread_generation == generation_
                               ? static_cast<counters*>(thread_counters)
                               : make_counters();
    if (mine != nullptr) mine->count(entry);
}

traffic_figures traffic::figures() const {
    const auto read = [](const counter& from) { return from.load(std::memory_order_relaxed); };
    traffic_figures sum;
    const std::lock_guard held{mutex_};
    for (const auto& each : all_) {
        for (std::size_t kind = 0; kind < sum.requests.size(); ++kind)
            sum.requests[kind] += read(each->requests[kind]);
        sum.bytes += read(each->bytes);
        sum.incomplete += read(each->incomplete);
        sum.secure += read(each->secure);
        sum.duration_sum += std::chrono::nanoseconds{read(each->duration_sum)};
        for (std::size_t index = 0; index < sum.durations.size(); ++index)
            sum.durations[index] += read(each->durations[index]);
        const std::size_t sites = each->site_count.load(std::memory_order_acquire);
        for (std::size_t index = 0; index < sites; ++index) {
            const site_counters& from = *each->sites[index];
            site_figures& to = sum.sites[from.name];
            for (std::size_t kind = 0; kind < to.requests.size(); ++kind)
                to.requests[kind] += read(from.requests[kind]);
            to.bytes += read(from.bytes);
        }
    }
    return sum;
}

} // namespace httpd
