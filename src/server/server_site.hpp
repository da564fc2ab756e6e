#pragma once
// server_site: accepts and serves on one loop of a server. Layer server, private. Loop thread only.

#include "net/listening_socket.hpp"
#include "server/loop_room.hpp"
#include "server/server_core.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/sync/async_event.hpp>

#include <chrono>
#include <memory>
#include <vector>

namespace simplenet::v0::detail {

struct on_way_tag;

/// A connection on its way to another loop. That loop takes it; if it does not in time, because a
/// handler blocks it, the site that accepted it takes it back.
///
/// Two owners, the message and the sender's list; the first to claim it has the connection.
class passed_connection final : public posted, public list_hook<on_way_tag> {
public:
    passed_connection(std::shared_ptr<server_core> core, std::size_t to, seat&& taken,
                      unique_fd connection, std::uint64_t number_of) noexcept
        : core_{std::move(core)}
        , to_{to}
        , place{std::move(taken)}
        , socket{std::move(connection)}
        , number{number_of} {}

    /// True, once: the caller has the connection.
    [[nodiscard]] bool claim() noexcept;
    [[nodiscard]] bool is_claimed() const noexcept {
        return claimed_.load(std::memory_order_acquire);
    }
    void let_go() noexcept {
        if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    void run() noexcept override;
    void drop() noexcept override;

private:
    std::shared_ptr<server_core> core_;
    const std::size_t to_;
    std::atomic<bool> claimed_ = false;
    std::atomic<unsigned> owners_ = 2;

public:
    // Of the claimant.
    seat place;
    unique_fd socket;
    const std::uint64_t number;
    std::chrono::steady_clock::time_point sent{}; // of the sender
};

class server_site {
public:
    server_site(std::shared_ptr<server_core> core, std::size_t index,
                std::unique_ptr<any_handler> handler);
    server_site(const server_site&) = delete;
    server_site& operator=(const server_site&) = delete;
    ~server_site();

    /// Accepts until the core begins its shutdown, and ends when no handler is left.
    [[nodiscard]] task<> run();

    /// The state of the core has changed.
    void called() noexcept;
    /// A connection of this loop is not counted any more.
    void connection_ended() noexcept {
        room_->connection_ended(waiting_);
        if (stopping_) changed_.set();
    }
    /// Serves a connection, which another loop may have accepted.
    void take(unique_fd socket, seat place, std::uint64_t number) noexcept;

    /// The site in whose scope `within` is; null: none on this loop.
    [[nodiscard]] static server_site* around(const scope& within) noexcept;
    [[nodiscard]] bool belongs_to(const server_core& core) const noexcept {
        return core_.get() == &core;
    }
    /// The handler around `within` has called shutdown(): it is not waited for.
    void excuse(const scope& within) noexcept;

    [[nodiscard]] bool is_stopping() const noexcept { return stopping_; }
    /// @pre not is_stopping().
    void wait_for_stop(stop_waiter& waiter) noexcept { waiting_.push_back(waiter); }
    /// There is no room for new connections.
    [[nodiscard]] bool is_short() const noexcept { return room_->is_short(waiting_); }

private:
    /// Between attempts after an error of the listener, which may be a shortage.
    static constexpr std::chrono::milliseconds pause_after_error{10};

    /// A connection whose handler runs. Its task awaits it at the beginning, without waiting: then
    /// it is known to its site.
    struct connection : list_hook<> {
        explicit connection(server_site& of) noexcept
            : site{of} {}
        connection(const connection&) = delete;
        connection& operator=(const connection&) = delete;
        ~connection();

        static bool await_ready() noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
            begin(innermost_scope(caller));
            return false;
        }
        static void await_resume() noexcept {}

        server_site& site;
        scope* within = nullptr; // of its task: all that it does
        bool excused = false;
        bool cut = false;

    private:
        void begin(scope& own) noexcept;
    };

    [[nodiscard]] task<> accept_until_stop(listening_socket& listener);
    [[nodiscard]] task<> accept_from(listening_socket& listener);
    [[nodiscard]] task<> accept_with_place(listening_socket& listener);
    [[nodiscard]] task<> drain(listening_socket& listener);
    /// Waits while few descriptors are left. False: it was stopped.
    [[nodiscard]] task<bool> wait_for_descriptors();
    /// Takes one of max_connections; waits for it until `until`. False: it was stopped, or too
    /// late.
    [[nodiscard]] task<bool> wait_for_place(std::chrono::steady_clock::time_point until);
    [[nodiscard]] task<> watch_passed();
    template <class Stream>
    [[nodiscard]] task<> serve(Stream stream, seat place, connection_info info);
    template <class Stream>
    void begin(unique_fd socket, seat place, std::uint64_t number);
    [[nodiscard]] task<> introduce(const connection& self, tcp_stream& stream, seat& place,
                                   connection_info& info);
    /// In the handler of the exception.
    void handler_threw(const connection& self, seat& place) noexcept;

    /// A connection was accepted, and has a place.
    void admit(unique_fd socket) noexcept;
    /// A connection was accepted, but there is no place.
    void refuse(unique_fd socket) noexcept;
    void tell_refused(int connection, const char* why) const noexcept;
    [[nodiscard]] std::size_t choose() noexcept;
    [[nodiscard]] std::size_t least_loaded() noexcept;
    [[nodiscard]] bool is_slow_to_take(std::size_t index) const noexcept;
    void pass(std::size_t to, unique_fd socket, seat place, std::uint64_t number) noexcept;
    void sweep_passed() noexcept;
    void begin_stop() noexcept;
    void cut(bool excused_too) noexcept;
    [[nodiscard]] bool has_drained() const noexcept;

    const std::shared_ptr<server_core> core_;
    const std::size_t index_;
    site_slot& slot_;
    std::unique_ptr<any_handler> handler_;
    std::vector<listening_socket> listeners_;

    scope* scope_ = nullptr;           // of run(): encloses the handlers
    server_site* next_here_ = nullptr; // sites of this thread
    task_group* serving_ = nullptr;
    task_group* passing_ = nullptr; // watch_passed()

    async_event changed_;     // look at the core again
    async_event place_freed_; // the same for those who wait for a place
    const std::shared_ptr<loop_room> room_ = loop_room::here();
    waiting_list waiting_{*core_, index_};
    bool stopping_ = false;
    bool cutting_ = false;  // the grace is over
    bool watching_ = false; // watch_passed() runs
    std::size_t turn_ = 0;  // of balance::round_robin
    std::size_t excused_ = 0;
    shutdown_report report_;
    intrusive_list<connection> connections_;
    intrusive_list<passed_connection, on_way_tag> passed_;
};

} // namespace simplenet::v0::detail
