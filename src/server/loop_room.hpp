#pragma once
// loop_room: ends connections that can be spared when there is no room for new ones. Layer server,
// private. Loop thread only.

#include "io/io_queue.hpp"
#include "server/server_core.hpp"

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <cstddef>
#include <memory>

namespace simplenet::v0::detail {

/// Those who wait at one site, in the order in which they began.
class waiting_list : public list_hook<> {
public:
    waiting_list(server_core& of, std::size_t site) noexcept
        : core_{of}
        , site_{site} {}
    waiting_list(const waiting_list&) = delete;
    waiting_list& operator=(const waiting_list&) = delete;
    ~waiting_list() { list_hook::unlink(); }

    void push_back(stop_waiter& waiter) noexcept { waiters_.push_back(waiter); }
    /// Tells all that the server stops.
    void stop() noexcept {
        forget_spared();
        while (!waiters_.empty())
            waiters_.pop_front().server_stops();
    }

private:
    friend class loop_room;

    /// A place among them.
    struct mark final : stop_waiter {
        void server_stops() noexcept override {}
    };

    /// Moves the marks: those that wait now have waited for long after the next call.
    void age() noexcept;
    /// Nobody has waited for long.
    void forget() noexcept;
    /// Those that may lose bytes count like all others again, as those that have waited longest.
    void forget_spared() noexcept;
    /// Ends up to `count` that have waited for long and lose nothing, the longest first. Looks at
    /// no more than `looks`. Returns how many have ended.
    [[nodiscard]] std::size_t end_some(std::size_t count, std::size_t& looks) noexcept;
    /// Ends up to `count` of those that may lose bytes, likewise.
    [[nodiscard]] std::size_t end_spared(std::size_t count, std::size_t& looks) noexcept;
    [[nodiscard]] bool end(stop_waiter& waiter) noexcept;

    server_core& core_;
    const std::size_t site_; // of the server
    mark one_;
    mark other_;
    mark* older_ = &one_; // linked: who stands before it has waited for long
    mark* newer_ = &other_;
    intrusive_list<stop_waiter> waiters_;
    intrusive_list<stop_waiter> spared_; // have waited for long, and may lose bytes
    std::size_t found_to_spare_ = 0;     // since the last tick
    std::size_t lacking_ = 0;            // places that nobody has made room for yet
    std::size_t awaiting_ = 0;           // of place_wait
};

/// Makes room on one loop, for all sites that it has.
///
/// Files that are only kept open for later are closed first. Then connections are spared that wait
/// for a request, or for the rest of a head or of a handshake, for half a second at least: the
/// request of a younger one may be on its way. They end by the timers of the loop, as at their own
/// limit, so that what has arrived for them wins. If nobody can be spared, answers end their
/// connections, and listeners leave new ones in the backlog, until somebody can: so files and
/// connections to other servers still find a descriptor.
///
/// Connections that may lose bytes end only if something is still lacking at a tick, and if fewer
/// others have ended since the last one than there are of them. So a few slow readers outlast a
/// crowd of idle connections of which many are too young to end, and a crowd that reads nothing
/// does not slow down the rest.
class loop_room final : public std::enable_shared_from_this<loop_room>, private shortage_observer {
public:
    /// That of this thread. Throws std::bad_alloc.
    [[nodiscard]] static std::shared_ptr<loop_room> here();
    /// Null: this thread has no server.
    [[nodiscard]] static loop_room* find() noexcept;
    loop_room() noexcept;
    loop_room(const loop_room&) = delete;
    loop_room& operator=(const loop_room&) = delete;
    ~loop_room();

    /// The loop of `queue` makes room for the site of `list` from now on.
    void add(waiting_list& list, io_queue& queue) noexcept;
    /// `holder` is asked before connections are spared.
    void add(spare_holder& holder) noexcept { holders_.push_back(holder); }
    /// Another loop has no connection to spare.
    void help(waiting_list& list) noexcept;

    /// While one exists, a connection waits for a place of the site.
    class place_wait {
    public:
        explicit place_wait(waiting_list& list) noexcept
            : list_{list} {
            ++list_.awaiting_;
        }
        place_wait(const place_wait&) = delete;
        place_wait& operator=(const place_wait&) = delete;
        ~place_wait() {
            if (--list_.awaiting_ == 0) list_.lacking_ = 0;
        }

    private:
        waiting_list& list_;
    };
    /// There is no place for a connection of the site.
    void lacks_place(waiting_list& list) noexcept;
    void lacks_descriptors() noexcept;
    /// A connection has got the descriptor `newest`, which may tell that they are scarce.
    ///
    /// @param is_here  This loop keeps the connection, and is told when it ends.
    void look_at_descriptors(int newest, bool is_here) noexcept;

    /// A connection of the site of `list` has ended.
    void connection_ended(waiting_list& list) noexcept {
        if (in_use_ != 0) --in_use_;
        if (list.lacking_ != 0) --list.lacking_;
        if (lacking_ + ending_ == 0) [[likely]]
            return;
        --(ending_ != 0 ? ending_ : lacking_);
        if (lacking_ == 0) relieved_.set();
    }
    /// Whether listeners should leave connections in the backlog.
    [[nodiscard]] bool lacks_any() const noexcept { return lacking_ != 0; }
    /// Whether connections have the descriptors, here or on other loops, and not something else.
    [[nodiscard]] bool is_crowded() noexcept;
    /// Whether few descriptors are left. Two system calls.
    [[nodiscard]] bool is_scarce() noexcept;
    /// What a listener waits for: somebody has made room.
    class relief {
    public:
        explicit relief(loop_room& room) noexcept
            : room_{room} {
            room_.relieved_.reset();
            ++room_.held_;
        }
        relief(const relief&) = delete;
        relief& operator=(const relief&) = delete;
        ~relief() { --room_.held_; }
        [[nodiscard]] auto wait() noexcept { return room_.relieved_.wait(); }

    private:
        loop_room& room_;
    };
    /// Whether connections of the site should end that can.
    [[nodiscard]] bool is_short(const waiting_list& list) const noexcept {
        return lacking_ + list.lacking_ != 0;
    }

private:
    template <void (loop_room::*Act)() noexcept>
    class timer final : public timer_node {
    public:
        explicit timer(loop_room& room) noexcept
            : room_{room} {}

    private:
        void expired() noexcept override { (room_.*Act)(); }
        loop_room& room_;
    };

    void accepting_pauses() noexcept override { lacks_descriptors(); }
    void lack_descriptors(std::size_t count) noexcept;
    void begin() noexcept;
    /// Returns RLIMIT_NOFILE.
    int read_limit() noexcept;
    void count_descriptors() noexcept;
    /// Returns how many descriptors its holders have closed.
    std::size_t give_up_spares() noexcept;
    void make_room() noexcept;
    /// Places or descriptors.
    [[nodiscard]] bool lacks_something() noexcept;
    void tick() noexcept;
    /// Nothing is lacking any more.
    void satisfy() noexcept;
    void tell() noexcept;

    intrusive_list<waiting_list> lists_;
    intrusive_list<spare_holder, spare_tag> holders_;
    io_queue* queue_ = nullptr;
    timer<&loop_room::make_room> soon_{*this};
    timer<&loop_room::tick> ticks_{*this}; // armed during a shortage
    bool was_asked_ = false;               // for anything, since the last tick
    bool was_lacking_ = false;             // descriptors, since then
    bool is_urgent_ = false;               // those that may lose bytes end, too
    bool has_ended_spared_ = false;        // such ones, since the last tick
    std::size_t ended_ = 0;                // others, since then
    std::size_t lacking_ = 0;              // descriptors
    std::size_t ending_ = 0;               // connections that were spared and are still there
    async_event relieved_;
    std::size_t held_ = 0;  // listeners
    int scarce_from_ = 0;   // descriptors
    int in_use_ = 0;        // descriptors, estimated, while few are left; otherwise 0
    bool holds_up_ = false; // listeners, at the last tick
    bool is_told_ = false;  // this shortage
};

} // namespace simplenet::v0::detail
