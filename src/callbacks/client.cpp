#include <simplenet/callbacks/client.hpp>

#include "callbacks/callback_connection.hpp"
#include "server/handler_exceptions.hpp"
#include "threads/posting_queue.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/stream/detail/backoff_steps.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>

namespace simplenet::v0 {
namespace detail {

/// Owned by the client, by the task that keeps it connected, and by the message to that.
class client_core : public std::enable_shared_from_this<client_core> {
public:
    client_core(event_loop& loop, std::string host, std::uint16_t port,
                callbacks::handlers handlers, const client_options& options)
        : loop_{loop}
        , client_{std::move(host), port, options}
        , handlers_{std::move(handlers)}
        , stable_after_{options.stable_after}
        , pauses_{options.backoff, random_seed()} {}

    /// How the connection ends; the strongest wish counts.
    enum class ending : std::uint8_t { none, shutdown, close, at_once };

    void connect();
    /// By disconnect() or stop().
    void end(ending how);
    /// The client is destroyed: no handler is called when this has returned.
    void retire();
    [[nodiscard]] callbacks::connection_ptr connection() const {
        const std::lock_guard locked{mutex_};
        return connection_;
    }

private:
    /// What keeps the client connected, from connect() to its end, however that comes.
    class activity {
    public:
        explicit activity(std::shared_ptr<client_core> core) noexcept
            : core_{std::move(core)} {}
        activity(activity&&) noexcept = default;
        activity& operator=(activity&&) = delete;
        ~activity();

        /// True: nothing is wanted any more, and the activity is over.
        [[nodiscard]] bool ends() noexcept;

        [[nodiscard]] static task<> run(activity own);

    private:
        std::shared_ptr<client_core> core_; // null after a move and at the end
    };
    /// What tcp_client calls with each connection. Not a closure: GCC refuses a coroutine that
    /// holds one in a unity build.
    struct session {
        client_core* core;
        [[nodiscard]] task<result<>> operator()(tcp_stream& stream) const {
            return core->serve(stream);
        }
    };
    /// A connection that lives.
    class presence {
    public:
        presence(client_core& of, callback_connection& served)
            : core_{of} {
            core_.living_ = &served;
            const std::lock_guard locked{core_.mutex_};
            core_.connection_ = served.self();
        }
        presence(const presence&) = delete;
        presence& operator=(const presence&) = delete;
        ~presence() {
            core_.living_ = nullptr;
            callbacks::connection_ptr last;
            const std::lock_guard locked{core_.mutex_};
            last.swap(core_.connection_);
        }

    private:
        client_core& core_;
    };

    /// Has the connection ended by the loop's thread. A part of the core: ending needs no memory.
    class end_message final : public posted {
    public:
        void run() noexcept override;
        void drop() noexcept override { const auto last = std::move(core); }

        std::shared_ptr<client_core> core; // set while this is on its way
    };

    void post_locked(ending how) noexcept;

    void begin();
    [[nodiscard]] bool wants() const {
        const std::lock_guard locked{mutex_};
        return is_wanted_;
    }
    void over_locked() noexcept {
        is_active_ = false;
        queue_ = nullptr;
        thread_ = {};
        ended_.notify_all();
    }

    // Loop thread only.
    [[nodiscard]] task<result<>> serve(tcp_stream& stream);
    void end_here(ending how) noexcept;

    event_loop& loop_;
    tcp_client client_;
    callbacks::handlers handlers_;

    mutable std::mutex mutex_;
    std::condition_variable ended_;
    bool is_wanted_ = false;         // to be connected
    bool is_active_ = false;         // there is an activity
    bool is_retired_ = false;        // connect() does nothing any more
    posting_queue* queue_ = nullptr; // of the loop, while the activity runs
    std::thread::id thread_;         // of the loop, likewise
    callbacks::connection_ptr connection_;
    ending asked_ = ending::none; // what the message asks for
    end_message message_;

    // Loop thread only.
    callback_connection* living_ = nullptr;
    std::stop_source attempts_; // stops connecting and its pauses
    async_event is_ended_;      // ends a pause without memory, which with_stop() would need
    const std::chrono::nanoseconds stable_after_;
    backoff_steps pauses_; // without memory: those of tcp_client end with its run()
};

// --- the activity --------------------------------------------------------------------------------

client_core::activity::~activity() {
    if (!core_) return;
    const std::lock_guard locked{core_->mutex_};
    core_->over_locked();
}

bool client_core::activity::ends() noexcept {
    const std::lock_guard locked{core_->mutex_};
    if (core_->is_wanted_) return false;
    core_->over_locked();
    return true;
}

task<> client_core::activity::run(activity own) {
    client_core& core = *own.core_;
    core.begin();
    for (;;) {
        bool lacks_memory = false;
        try {
            core.attempts_ = std::stop_source{};
            if (core.wants()) {
                task<result<>> work = core.client_.run(session{&core});
                static_cast<void>(co_await with_stop(core.attempts_.get_token(), std::move(work)));
            }
        } catch (const std::bad_alloc&) { // it may be there later
            lacks_memory = true;
        }
        if (lacks_memory) {
            core.is_ended_.reset();
            if (core.wants()) {
                const auto pause = core.pauses_.next();
                static_cast<void>(co_await with_timeout(core.is_ended_.wait(), pause));
            }
        }
        const bool is_stopped = co_await this_task::stop_requested();
        if (is_stopped) co_return; // the loop ends
        if (own.ends()) {
            own.core_.reset();
            co_return;
        }
    }
}

void client_core::begin() {
    const std::lock_guard locked{mutex_};
    queue_ = &posting_queue::of(run_queue::require_current());
    thread_ = std::this_thread::get_id();
}

task<result<>> client_core::serve(tcp_stream& stream) {
    std::error_code error = make_error_code(errc::end_of_stream);
    const auto began = loop_.now();
    try {
        const auto peer = stream.remote_endpoint();
        const auto local = stream.local_endpoint();
        callback_connection served{handlers_, stream, peer ? *peer : endpoint{},
                                   local ? *local : endpoint{}};
        const presence here{*this, served};
        task<> life = served.run();
        co_await std::move(life);
        if (const auto why = served.self()->error()) error = why;
    } catch (...) { // ends the connection, as on a server, and not the client
        report_handler_exception(std::current_exception());
    }
    if (loop_.now() - began >= stable_after_) pauses_.reset();
    if (!wants()) co_return result<>{};
    co_return fail(error);
}

void client_core::end_here(ending how) noexcept {
    if (living_ == nullptr) {
        attempts_.request_stop();
        is_ended_.set();
    } else if (how == ending::shutdown) {
        living_->shutdown();
    } else if (how == ending::close) {
        living_->close();
    } else {
        living_->end_here();
    }
}

// --- the client ----------------------------------------------------------------------------------

void client_core::connect() {
    {
        const std::lock_guard locked{mutex_};
        if (is_retired_) return;
        is_wanted_ = true;
        if (std::exchange(is_active_, true)) return;
    }
    // All that may lack memory is allocated here, and the caller is told. Without the lock: a loop
    // that has been stopped drops the activity inside the call.
    static_cast<void>(loop_.spawn_remote(activity::run(activity{shared_from_this()})));
}

void client_core::post_locked(ending how) noexcept {
    // Before the activity runs it looks at is_wanted_.
    if (queue_ == nullptr) return;
    asked_ = std::max(asked_, how);
    if (message_.core) return;
    message_.core = shared_from_this();
    queue_->offer(message_);
}

void client_core::end_message::run() noexcept {
    std::shared_ptr<client_core> keeps;
    ending how = ending::none;
    {
        const std::lock_guard locked{core->mutex_};
        keeps = std::move(core);
        how = std::exchange(keeps->asked_, ending::none);
    }
    keeps->end_here(how);
}

void client_core::end(ending how) {
    {
        const std::lock_guard locked{mutex_};
        is_wanted_ = false;
        if (std::this_thread::get_id() != thread_) return post_locked(how);
    }
    end_here(how);
}

void client_core::retire() {
    std::unique_lock locked{mutex_};
    is_retired_ = true;
    is_wanted_ = false;
    // An activity that does not run yet will see that.
    if (thread_ == std::thread::id{}) return;
    if (thread_ == std::this_thread::get_id()) {
        locked.unlock();
        return end_here(ending::at_once);
    }
    post_locked(ending::at_once);
    ended_.wait(locked, [this] { return !is_active_; });
}

} // namespace detail

namespace callbacks {

client::client(event_loop& loop, std::string host, std::uint16_t port, handlers handlers,
               const client_options& options)
    : core_{std::make_shared<detail::client_core>(loop, std::move(host), port, std::move(handlers),
                                                  options)} {}

client::~client() {
    if (core_) core_->retire();
}

void client::connect() {
    core_->connect();
}

void client::disconnect() {
    core_->end(detail::client_core::ending::shutdown);
}

void client::stop() {
    core_->end(detail::client_core::ending::close);
}

connection_ptr client::connection() const {
    return core_->connection();
}

} // namespace callbacks
} // namespace simplenet::v0
