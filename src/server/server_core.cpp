#include "server/server_core.hpp"

#include "runtime/loop_access.hpp"
#include "runtime/loop_group_access.hpp"
#include "server/handler_exceptions.hpp"
#include "server/server_site.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace simplenet::v0::detail {

// --- calls ---------------------------------------------------------------------------------------

void site_call::run() noexcept {
    const auto core = std::exchange(core_, nullptr);
    site_slot& slot = core->slot(index_);
    slot.is_called.store(false, std::memory_order_seq_cst); // before the site looks at the core
    if (slot.site != nullptr) slot.site->called();
}

void site_call::drop() noexcept {
    const auto core = std::exchange(core_, nullptr);
    core->slot(index_).is_called.store(false, std::memory_order_relaxed);
}

void server_core::call(site_slot& slot) noexcept {
    if (slot.queue == nullptr || slot.is_called.exchange(true, std::memory_order_seq_cst)) return;
    slot.call.core_ = shared_from_this();
    slot.queue->post(slot.call);
}

void server_core::call_all() noexcept {
    const std::lock_guard locked{mutex_};
    for (auto& each : slots_)
        call(*each);
}

// --- the handle ----------------------------------------------------------------------------------

server_core::server_core(event_loop_group& group, const server_settings& with,
                         std::vector<unique_fd> listening)
    : settings{with}
    , group_life_{loop_group_access::life_of(group)} {
    const std::size_t loops = group.size();
    for (std::size_t index = 0; index < loops; ++index) {
        auto& slot = slots_.emplace_back(std::make_unique<site_slot>());
        slot->loop = &group[index];
        slot->call.index_ = index;
    }
    listeners_.resize(loops);
    std::size_t site = 0;
    for (unique_fd& each : listening) {
        slots_[site]->listening.push_back(each.get());
        listeners_[site].push_back(std::move(each));
        if (!settings.single_acceptor) site = (site + 1) % loops;
    }
}

namespace {

/// Starts a site on its loop. If the loop has ended, the site has, too.
class site_start {
public:
    site_start(std::shared_ptr<server_core> core, std::size_t index,
               std::unique_ptr<any_handler> handler) noexcept
        : core_{std::move(core)}
        , index_{index}
        , handler_{std::move(handler)} {}
    site_start(site_start&&) noexcept = default;
    site_start& operator=(site_start&&) = delete;
    ~site_start() {
        if (core_) core_->site_ended(index_);
    }

    void operator()() noexcept;

    /// The life of a site. The site is gone when this is destroyed, with the frame.
    [[nodiscard]] static task<> run(site_start start) {
        try {
            server_site site{start.core_, start.index_, std::move(start.handler_)};
            task<> life = site.run();
            co_await std::move(life);
        } catch (const std::bad_alloc&) {
            // As if the loop had ended. A site that runs handles a lack of memory itself: it
            // reports that it cannot begin to accept, and tries everything else again or closes one
            // connection.
            report_handler_exception(start.core_->settings, std::current_exception());
        }
    }

private:
    std::shared_ptr<server_core> core_; // null after a move
    std::size_t index_;
    std::unique_ptr<any_handler> handler_;
};

void site_start::operator()() noexcept {
    const std::shared_ptr<server_core> core = core_;
    try {
        spawn(run(std::move(*this)));
    } catch (const std::bad_alloc&) {
        // As if the loop had ended: the destructor, or that of the frame, tells the core.
        report_handler_exception(core->settings, std::current_exception());
    }
}

} // namespace

result<> server_core::serve(std::unique_ptr<any_handler> handler) {
    SIMPLENET_EXPECTS(!group_life_.expired(),
                      "serve() after the event_loop_group of the server was destroyed: destroy the "
                      "group last");
    std::vector<std::unique_ptr<any_handler>> copies;
    for (std::size_t each = 1; each < size(); ++each)
        copies.push_back(handler->copy());
    copies.push_back(std::move(handler));
    std::vector<site_start> starts;
    starts.reserve(size());
    {
        const std::lock_guard locked{mutex_};
        SIMPLENET_EXPECTS(!is_served_, "a server serves one handler: serve() was called before");
        if (is_stopping()) return fail(std::errc::operation_canceled);
        is_served_ = true;
        living_ = draining_ = size();
        accepting_.store(size(), std::memory_order_relaxed);
        for (auto& each : slots_)
            each->has_ended = false;
    }
    // From here on each start, or the site that it becomes, ends its site.
    for (std::size_t each = 0; each < size(); ++each)
        starts.emplace_back(shared_from_this(), each, std::move(copies[each]));
    try {
        metrics_.publish();
        for (std::size_t each = 0; each < size(); ++each)
            slots_[each]->loop->post(std::move(starts[each]));
    } catch (...) {
        begin_shutdown({});
        throw;
    }
    return {};
}

void server_core::begin_shutdown(std::chrono::nanoseconds grace) noexcept {
    using namespace std::chrono;
    const std::int64_t now = steady_clock::now().time_since_epoch().count();
    const std::int64_t left = std::clamp<std::int64_t>(grace.count(), 0, never - 1 - now);
    const std::int64_t wanted = now + left;
    std::int64_t before = deadline_.load(std::memory_order_relaxed);
    while (before > wanted &&
           !deadline_.compare_exchange_weak(before, wanted, std::memory_order_acq_rel)) {
    }
    std::vector<std::shared_ptr<cross_channel<char>>> reported;
    {
        const std::lock_guard locked{mutex_};
        if (!is_served_) {
            for (auto& each : slots_)
                close_listeners(*each);
            for (auto& each : listeners_)
                each.clear();
            reported = to_notify();
        }
        for (auto& each : slots_)
            call(*each);
    }
    for (const auto& each : reported)
        each->close();
}

void server_core::end() noexcept {
    if (born_in_ != fork_generation()) return; // the parent's, whose threads do not exist here
    SIMPLENET_EXPECTS(!is_on_own_thread(),
                      "a server was destroyed on a thread of its group, which it would wait for: "
                      "await shutdown() first, or destroy it elsewhere");
    metrics_.withdraw();
    spares_nobody_.store(true, std::memory_order_release);
    begin_shutdown({});
    std::unique_lock locked{mutex_};
    ended_.wait(locked, [this] { return living_ == 0; });
}

bool server_core::is_on_own_thread() noexcept {
    const run_queue* const here = run_queue::current();
    if (here == nullptr) return false;
    const std::lock_guard locked{mutex_};
    return std::ranges::any_of(slots_, [here](const auto& each) {
        // Without a site the loop may be gone.
        return !each->has_ended && &loop_access::queue_of(*each->loop) == here;
    });
}

std::shared_ptr<cross_channel<char>> server_core::subscribe() {
    auto made = std::make_shared<cross_channel<char>>(0);
    const std::lock_guard locked{mutex_};
    if (draining_ == 0 && (is_served_ || is_stopping())) {
        made->close();
    } else {
        subscribers_.push_back(made);
    }
    return made;
}

shutdown_report server_core::report() const noexcept {
    const std::lock_guard locked{mutex_};
    return report_;
}

server_statistics server_core::statistics() const {
    server_statistics sum;
    for (const auto& each : slots_) {
        // `open` last: a connection that ends meanwhile is then missing, not counted twice.
        sum.accepted += each->accepted.load(std::memory_order_relaxed);
        sum.refused += each->refused.load(std::memory_order_relaxed);
        sum.ended += each->ended.load(std::memory_order_relaxed);
        sum.failed += each->failed.load(std::memory_order_relaxed);
        const std::size_t open = each->open.load(std::memory_order_relaxed);
        sum.open += open;
        sum.open_by_loop.push_back(open);
    }
    return sum;
}

result<std::vector<unique_fd>> server_core::duplicate_listeners() {
    std::vector<unique_fd> copies;
    const std::lock_guard locked{mutex_};
    for (const auto& slot : slots_) {
        for (const int each : slot->listening) {
            const int copy = sys::duplicate(each);
            if (copy < 0) return fail(sys::error_from(copy));
            copies.emplace_back(copy);
        }
    }
    if (copies.empty()) return fail(std::errc::bad_file_descriptor);
    socket_file.reset(); // the path is the successor's
    return copies;
}

// --- the sites -----------------------------------------------------------------------------------

std::vector<unique_fd> server_core::take_listeners(std::size_t index) {
    const std::lock_guard locked{mutex_};
    return std::exchange(listeners_[index], {});
}

std::chrono::steady_clock::time_point server_core::deadline() const noexcept {
    return std::chrono::steady_clock::time_point{
        std::chrono::nanoseconds{deadline_.load(std::memory_order_acquire)}};
}

void server_core::site_began(std::size_t index, server_site& site, posting_queue& queue) noexcept {
    const std::lock_guard locked{mutex_};
    slots_[index]->site = &site;
    slots_[index]->is_to_begin.store(false, std::memory_order_relaxed);
    slots_[index]->queue = &queue;
}

void server_core::site_closes_listeners(std::size_t index) noexcept {
    const std::lock_guard locked{mutex_};
    close_listeners(*slots_[index]);
}

/// Under the mutex, before the descriptors are closed.
void server_core::close_listeners(site_slot& slot) noexcept {
    if (std::exchange(slot.listening, {}).empty()) return;
    if (!socket_file) return;
    // Removed only if it is ours: another server may listen there by now.
    std::uint64_t number = 0;
    if (sys::socket_file_number(socket_path.c_str(), number) == 0 && number == *socket_file) {
        static_cast<void>(sys::unlink_socket(socket_path.c_str()));
    }
    socket_file.reset();
}

void server_core::note_accepted_all(site_slot& slot) noexcept {
    if (std::exchange(slot.has_accepted_all, true)) return;
    if (accepting_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    for (auto& each : slots_)
        call(*each);
}

void server_core::note_drained(site_slot& slot, shutdown_report part) noexcept {
    if (std::exchange(slot.has_drained, true)) return;
    report_.drained += part.drained;
    report_.cut += part.cut;
    --draining_;
}

std::vector<std::shared_ptr<cross_channel<char>>> server_core::to_notify() noexcept {
    if (draining_ != 0) return {};
    return std::exchange(subscribers_, {});
}

void server_core::site_accepted_all(std::size_t index) noexcept {
    const std::lock_guard locked{mutex_};
    note_accepted_all(*slots_[index]);
}

void server_core::site_drained(std::size_t index, shutdown_report part) noexcept {
    std::vector<std::shared_ptr<cross_channel<char>>> reported;
    {
        const std::lock_guard locked{mutex_};
        note_drained(*slots_[index], part);
        reported = to_notify();
    }
    for (const auto& each : reported)
        each->close();
}

void server_core::site_ended(std::size_t index) noexcept {
    std::vector<std::shared_ptr<cross_channel<char>>> reported;
    {
        const std::lock_guard locked{mutex_};
        site_slot& slot = *slots_[index];
        slot.is_to_begin.store(false, std::memory_order_relaxed);
        slot.queue = nullptr;
        close_listeners(slot); // if it never began
        listeners_[index].clear();
        note_accepted_all(slot);
        note_drained(slot, {});
        slot.has_ended = true;
        --living_;
        reported = to_notify();
        ended_.notify_all(); // under the mutex: this may be gone once it is unlocked
    }
    for (const auto& each : reported)
        each->close();
}

bool server_core::take_place() noexcept {
    std::size_t taken = places_.load(std::memory_order_seq_cst);
    while (taken < settings.max_connections) {
        if (places_.compare_exchange_weak(taken, taken + 1, std::memory_order_seq_cst)) return true;
    }
    return false;
}

void server_core::return_place() noexcept {
    places_.fetch_sub(1, std::memory_order_seq_cst);
    if (lacks_place.load(std::memory_order_seq_cst) &&
        lacks_place.exchange(false, std::memory_order_seq_cst)) {
        call_all();
    }
}

void server_core::ask_others_for_room(std::size_t site) noexcept {
    const std::lock_guard locked{mutex_};
    for (std::size_t each = 0; each != slots_.size(); ++each) {
        if (each == site) continue;
        slots_[each]->needs_room.store(true, std::memory_order_seq_cst);
        call(*slots_[each]);
    }
}

// --- seat ----------------------------------------------------------------------------------------

seat::seat(std::shared_ptr<server_core> core, std::size_t index) noexcept
    : core_{std::move(core)}
    , index_{static_cast<std::uint32_t>(index)} {
    core_->slot(index_).open.fetch_add(1, std::memory_order_relaxed);
}

void seat::move_to(std::size_t index) noexcept {
    core_->slot(index).open.fetch_add(1, std::memory_order_relaxed);
    core_->slot(index_).open.fetch_sub(1, std::memory_order_relaxed);
    index_ = static_cast<std::uint32_t>(index);
}

seat::~seat() {
    if (!core_) return;
    site_slot& slot = core_->slot(index_);
    (outcome_ == outcome::refused ? slot.refused : slot.ended)
        .fetch_add(1, std::memory_order_relaxed);
    if (outcome_ == outcome::failed) slot.failed.fetch_add(1, std::memory_order_relaxed);
    slot.open.fetch_sub(1, std::memory_order_relaxed);
    if (core_->settings.max_connections != 0) core_->return_place();
    if (tells_ && slot.site != nullptr) slot.site->connection_ended();
}

} // namespace simplenet::v0::detail
