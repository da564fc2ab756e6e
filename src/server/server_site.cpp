#include "server/server_site.hpp"

#include "io/io_queue.hpp"
#include "runtime/loop_access.hpp"
#include "server/balance.hpp"
#include "server/handler_exceptions.hpp"
#include "server/proxy_header.hpp"

#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/socket/detail/name_calls.hpp>
#include <simplenet/socket/detail/socket_access.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <concepts>
#include <exception>
#include <new>
#include <system_error>
#include <utility>
#include <variant>

namespace simplenet::v0::detail {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A loop that has not taken a connection within this time is blocked.
constexpr auto passing_time = 20ms;

constinit thread_local server_site* sites_here = nullptr;

std::int64_t now_ns() noexcept {
    return clock::now().time_since_epoch().count();
}

template <class Stream>
struct socket_of;
template <>
struct socket_of<tcp_stream> {
    using type = nonblocking::tcp_stream;
};
template <>
struct socket_of<local_stream> {
    using type = nonblocking::local_stream;
};

void describe(const tcp_stream& stream, connection_info& info) noexcept {
    if (const auto peer = names::ip_accepted_from(stream.native_handle())) info.peer = *peer;
    if (const auto local = stream.local_endpoint()) info.local = *local;
}
void describe(const local_stream& stream, connection_info& info) noexcept {
    if (const auto credentials = stream.peer_credentials()) info.credentials = *credentials;
}

} // namespace

// Not in an anonymous namespace, see src/net/sockets.cpp.

/// Replaces the addresses in `info` by those that the proxy reports. False: it is not one.
task<bool> read_proxied(tcp_stream& stream, const server_settings& settings,
                        connection_info& info) {
    const endpoint proxy = info.peer; // as describe() has found it
    if (proxy.port() == 0) co_return false;
    const address_set& allowed = settings.proxies;
    if (!allowed.empty() && !allowed.contains(proxy.address())) co_return false;
    auto reading = read_proxy_header(stream);
    const auto header = co_await with_timeout(std::move(reading), settings.proxy_timeout);
    if (!header) co_return false;
    if (*header) {
        info.peer = (*header)->source;
        info.local = (*header)->destination;
        info.proxied = true;
    }
    co_return true;
}

// --- passed_connection ---------------------------------------------------------------------------

bool passed_connection::claim() noexcept {
    return !claimed_.exchange(true, std::memory_order_acq_rel);
}

void passed_connection::run() noexcept {
    site_slot& slot = core_->slot(to_);
    if (slot.is_to_begin.load(std::memory_order_relaxed)) [[unlikely]] {
        posting_queue::of(run_queue::require_current()).post(*this); // in a turn or two
        return;
    }
    slot.pending_since.store(now_ns(), std::memory_order_relaxed);
    slot.pending.fetch_sub(1, std::memory_order_relaxed);
    if (slot.site != nullptr && claim()) {
        slot.site->take(std::move(socket), std::move(place), number);
    }
    let_go();
}

// The loop has ended, and with it what it would serve.
void passed_connection::drop() noexcept {
    core_->slot(to_).pending.fetch_sub(1, std::memory_order_relaxed);
    if (claim()) {
        socket.reset();
        const seat over{std::move(place)};
    }
    let_go();
}

// --- the site ------------------------------------------------------------------------------------

server_site::server_site(std::shared_ptr<server_core> core, std::size_t index,
                         std::unique_ptr<any_handler> handler)
    : core_{std::move(core)}
    , index_{index}
    , slot_{core_->slot(index)}
    , handler_{std::move(handler)} {
    const unsigned ahead = core_->settings.waits_when_full() ? 0 : core_->settings.accept_ahead;
    for (unique_fd& each : core_->take_listeners(index_))
        listeners_.emplace_back(std::move(each), ahead);
    // Nothing throws from here on.
    next_here_ = std::exchange(sites_here, this);
}

server_site::~server_site() {
    slot_.site = nullptr; // a call may still be on its way
    core_->site_closes_listeners(index_);
    waiting_.stop();
    while (!passed_.empty())
        passed_.pop_front().let_go();
    server_site** link = &sites_here;
    while (*link != this)
        link = &(*link)->next_here_;
    *link = next_here_;
}

server_site* server_site::around(const scope& within) noexcept {
    if (sites_here == nullptr) return nullptr;
    for (const scope* each = &within; each != nullptr; each = each->enclosing) {
        for (server_site* site = sites_here; site != nullptr; site = site->next_here_) {
            if (site->scope_ == each) return site;
        }
    }
    return nullptr;
}

void server_site::excuse(const scope& within) noexcept {
    const scope* task = &within; // becomes the one of the handler's task
    while (task->enclosing != scope_) {
        if (task->enclosing == nullptr) return;
        task = task->enclosing;
    }
    connections_.for_each([&](connection& each) {
        if (each.within != task || each.excused) return;
        each.excused = true;
        ++excused_;
        changed_.set();
    });
}

void server_site::called() noexcept {
    changed_.set();
    place_freed_.set();
    if (slot_.needs_room.exchange(false, std::memory_order_seq_cst) && !stopping_) {
        room_->help(waiting_);
    }
    if (core_->spares_nobody()) cut(true);
}

task<> server_site::run() {
    scope_ = std::addressof(co_await own_scope{});
    task_group serving;
    task_group passing;
    task_group accepting;
    serving_ = &serving;
    passing_ = &passing;
    core_->site_began(index_, *this, posting_queue::of(*scope_->queue));
    room_->add(waiting_, io_queue::of(*scope_->queue));
    bool torn_down = false; // the loop ends before the server does
    try {
        for (listening_socket& each : listeners_)
            accepting.spawn(accept_until_stop(each));
    } catch (const std::bad_alloc&) {
        // As if it did: a site that does not accept serves nothing.
        report_handler_exception(core_->settings, std::current_exception());
        torn_down = true;
    }

    while (!torn_down) {
        changed_.reset();
        if (core_->is_stopping()) break;
        const auto waited = co_await changed_.wait();
        torn_down = !waited;
    }

    begin_stop();
    accepting.request_stop();
    static_cast<void>(co_await accepting.join());
    for (listening_socket& each : listeners_) {
        bool drained = torn_down;
        while (!drained) {
            try {
                task<> draining = drain(each);
                co_await std::move(draining);
                drained = true;
            } catch (const std::bad_alloc&) {
                drained = clock::now() >= core_->deadline();
            }
            if (!drained) static_cast<void>(co_await async_sleep(pause_after_error));
        }
    }
    core_->site_closes_listeners(index_);
    for (listening_socket& each : listeners_)
        each.close();
    static_cast<void>(co_await passing.join());
    core_->site_accepted_all(index_);

    while (!torn_down) {
        changed_.reset();
        if (core_->all_accepted() && has_drained()) break;
        const auto limit = core_->deadline();
        if (!cutting_ && clock::now() >= limit) {
            cut(core_->spares_nobody());
            continue;
        }
        const auto waited =
            co_await with_deadline(changed_.wait(), cutting_ ? clock::time_point::max() : limit);
        torn_down = !waited && waited.error() != errc::deadline_exceeded;
    }
    if (torn_down) cut(true);
    report_.drained += excused_;
    core_->site_drained(index_, report_);
    static_cast<void>(co_await serving.join());
}

void server_site::begin_stop() noexcept {
    stopping_ = true;
    waiting_.stop();
}

void server_site::cut(bool excused_too) noexcept {
    cutting_ = true;
    connections_.for_each([excused_too](connection& each) {
        if (each.cut || (each.excused && !excused_too)) return;
        each.cut = true;
        each.within->stop(stop_reason::canceled);
    });
}

bool server_site::has_drained() const noexcept {
    return slot_.open.load(std::memory_order_relaxed) <= excused_;
}

// --- balance -------------------------------------------------------------------------------------

std::size_t server_site::choose() noexcept {
    const server_settings& settings = core_->settings;
    const std::size_t loops = core_->size();
    if (!settings.rebalances) return index_;
    if (settings.balance == balance::round_robin) {
        for (std::size_t tries = 0; tries < loops; ++tries) {
            turn_ = (turn_ + 1) % loops;
            if (!is_slow_to_take(turn_)) return turn_;
        }
        return index_;
    }
    if (settings.single_acceptor) return least_loaded();
    std::size_t open = 0;
    for (std::size_t each = 0; each < loops; ++each)
        open += core_->slot(each).open.load(std::memory_order_relaxed);
    const std::size_t mine = slot_.open.load(std::memory_order_relaxed);
    return mine < fair_share(open, loops) ? index_ : least_loaded();
}

/// This loop if others have no less.
std::size_t server_site::least_loaded() noexcept {
    turn_ = (turn_ + 1) % core_->size(); // among equals not always the first
    return detail::least_loaded(
        core_->size(), index_, turn_,
        [this](std::size_t each) { return core_->slot(each).open.load(std::memory_order_relaxed); },
        [this](std::size_t each) { return is_slow_to_take(each); });
}

bool server_site::is_slow_to_take(std::size_t index) const noexcept {
    const site_slot& slot = core_->slot(index);
    if (index == index_ || slot.pending.load(std::memory_order_relaxed) == 0) return false;
    const std::int64_t since = slot.pending_since.load(std::memory_order_relaxed);
    return now_ns() - since > std::chrono::nanoseconds{passing_time}.count();
}

void server_site::pass(std::size_t to, unique_fd socket, seat place,
                       std::uint64_t number) noexcept {
    passed_connection* message = nullptr;
    try {
        message = new passed_connection{core_, to, std::move(place), std::move(socket), number};
        if (!watching_) {
            passing_->spawn(watch_passed());
            watching_ = true;
        }
    } catch (const std::bad_alloc&) {
        if (message == nullptr) { // no memory: the arguments are still here
            place.move_to(index_);
            return take(std::move(socket), std::move(place), number);
        }
    }
    message->sent = clock::now();
    if (const event_hook& hook = io_queue::of(*scope_->queue).on_event) {
        hook.tell(
            {.kind = loop_event_kind::handed_over, .text = {}, .descriptor = message->socket.get()},
            "connection %llu goes from loop %zu of the server to loop %zu",
            static_cast<unsigned long long>(number), index_, to);
    }
    passed_.push_back(*message);
    site_slot& slot = core_->slot(to);
    if (slot.pending.fetch_add(1, std::memory_order_relaxed) == 0) {
        slot.pending_since.store(now_ns(), std::memory_order_relaxed);
    }
    // A loop of the group exists as long as this one runs.
    loop_access::queue_of(*slot.loop).post(*message);
}

task<> server_site::watch_passed() {
    while (!passed_.empty()) {
        const auto slept = co_await async_sleep(passing_time);
        if (!slept) break; // the loop ends
        sweep_passed();
    }
    watching_ = false;
}

void server_site::sweep_passed() noexcept {
    intrusive_list<passed_connection, on_way_tag> rest;
    const auto late = clock::now() - passing_time;
    while (!passed_.empty()) {
        passed_connection& each = passed_.pop_front();
        if (!each.is_claimed() && each.sent > late) {
            rest.push_back(each);
            continue;
        }
        if (each.claim()) { // its loop is blocked
            each.place.move_to(index_);
            take(std::move(each.socket), std::move(each.place), each.number);
        }
        each.let_go();
    }
    passed_.splice_back(rest);
}

// --- serving -------------------------------------------------------------------------------------

void server_site::connection::begin(scope& own) noexcept {
    within = &own;
    site.connections_.push_back(*this);
    if (site.cutting_) {
        cut = true;
        own.stop(stop_reason::canceled);
    }
}

server_site::connection::~connection() {
    unlink();
    if (excused) --site.excused_;
    if (site.stopping_) ++(cut ? site.report_.cut : site.report_.drained);
}

/// Calls a handler of either kind. An awaitable of `bool`: whether it succeeded.
template <class Stream>
class [[nodiscard]] handler_call {
public:
    handler_call(connection_handler<Stream>& of, Stream&& stream, const connection_info& info) {
        if (of.reports) {
            running_.template emplace<1>(of.report(std::move(stream), info).operator co_await());
        } else {
            running_.template emplace<2>(of.serve(std::move(stream), info).operator co_await());
        }
    }

    static bool await_ready() noexcept { return false; }
    template <own_promise Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        scope& within = scope_of(caller, at);
        if (running_.index() == 1) return std::get<1>(running_).start(caller, within);
        return std::get<2>(running_).start(caller, within);
    }
    bool await_resume() {
        if (running_.index() == 1) return std::get<1>(running_).await_resume().has_value();
        std::get<2>(running_).await_resume();
        return true;
    }

private:
    std::variant<std::monostate, task_awaiter<result<>>, task_awaiter<void>> running_;
};

/// Replaces the addresses in `info` by those that a proxy reports, or else refuses the connection.
task<> server_site::introduce(const connection& self, tcp_stream& stream, seat& place,
                              connection_info& info) {
    const bool proxied = co_await read_proxied(stream, core_->settings, info);
    if (proxied) co_return;
    // A shutdown may have come before the header.
    const bool stopped = self.within->stopped();
    place.set(stopped ? seat::outcome::ended : seat::outcome::refused);
    if (!stopped) tell_refused(stream.native_handle(), "no PROXY header of a known proxy");
    static_cast<void>(stream.set_linger(std::chrono::seconds{0}));
    stream.close();
}

void server_site::handler_threw(const connection& self, seat& place) noexcept {
    try {
        throw;
    } catch (const handler_failed&) {
        if (!self.within->stopped()) place.set(seat::outcome::failed);
    } catch (...) {
        std::exception_ptr thrown = std::current_exception();
        // The server or the end of its loop may have stopped the handler.
        if (is_only_stop(thrown, self.within->reason)) return;
        place.set(seat::outcome::failed);
        report_handler_exception(core_->settings, std::move(thrown));
    }
}

// A connection that waits keeps this frame, so it holds only what must survive the wait.
template <class Stream>
task<> server_site::serve(Stream stream, seat place, connection_info info) {
    place.tell();
    connection self{*this};
    co_await self;
    try {
        if constexpr (std::same_as<Stream, tcp_stream>) {
            if (core_->settings.behind_proxy) co_await introduce(self, stream, place, info);
        }
        if (stream.is_open()) {
            handler_call<Stream> call{static_cast<connection_handler<Stream>&>(*handler_),
                                      std::move(stream), info};
            const bool succeeded = co_await call;
            if (!succeeded && !self.within->stopped()) place.set(seat::outcome::failed);
        }
    } catch (...) {
        handler_threw(self, place);
    }
}

template <class Stream>
void server_site::begin(unique_fd socket, seat place, std::uint64_t number) {
    Stream stream{socket_access::make<typename socket_of<Stream>::type>(std::move(socket))};
    const auto idle = core_->settings.idle_timeout;
    if (idle > std::chrono::nanoseconds::zero()) stream.set_idle_timeout(idle);
    connection_info info;
    info.number = number;
    if (handler_->wants_info || core_->settings.behind_proxy) describe(stream, info);
    serving_->spawn(serve<Stream>(std::move(stream), std::move(place), info));
}

void server_site::take(unique_fd socket, seat place, std::uint64_t number) noexcept {
    try {
        if (core_->settings.kind == connection_kind::tcp) {
            begin<tcp_stream>(std::move(socket), std::move(place), number);
        } else {
            begin<local_stream>(std::move(socket), std::move(place), number);
        }
    } catch (const std::bad_alloc&) {
        // The connection is closed, and counts as ended.
    }
}

} // namespace simplenet::v0::detail
