#include <simplenet/callbacks/client.hpp>

#include "callbacks/callback_connection.hpp"
#include "threads/posting_queue.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/threads/with_stop.hpp>

#include <condition_variable>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>

namespace simplenet::v0 {
namespace detail {

/// Owned by the client, by the task that keeps it connected, and by calls on their way to that.
class client_core : public std::enable_shared_from_this<client_core> {
public:
    client_core(event_loop& loop, std::string host, std::uint16_t port,
                callbacks::handlers handlers, const client_options& options)
        : loop_{loop}
        , client_{std::move(host), port, options}
        , handlers_{std::move(handlers)} {}

    void connect();
    void disconnect() {
        end([](client_core& core) { core.shut_down(); });
    }
    void stop() {
        end([](client_core& core) { core.close(); });
    }
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

        /// On the loop's thread: starts to keep the client connected.
        void operator()() noexcept;
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

    /// Calls `function(core)` on the loop's thread, if the client is active.
    template <class Function>
    void end(Function function);
    template <class Function>
    void post_locked(Function function);

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
    void shut_down() noexcept;
    void close() noexcept;
    void end_here() noexcept;

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

    // Loop thread only.
    callback_connection* living_ = nullptr;
    std::stop_source attempts_; // stops connecting and pauses
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

void client_core::activity::operator()() noexcept {
    try {
        spawn(run(std::move(*this)));
    } catch (const std::bad_alloc&) {
        // As if the loop had ended.
    }
}

task<> client_core::activity::run(activity own) {
    client_core& core = *own.core_;
    core.begin();
    for (;;) {
        core.attempts_ = std::stop_source{};
        if (core.wants()) {
            task<result<>> work = core.client_.run(session{&core});
            static_cast<void>(co_await with_stop(core.attempts_.get_token(), std::move(work)));
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
    const auto peer = stream.remote_endpoint();
    const auto local = stream.local_endpoint();
    callback_connection served{handlers_, stream, peer ? *peer : endpoint{},
                               local ? *local : endpoint{}};
    {
        const presence here{*this, served};
        co_await served.run();
    }
    if (!wants()) co_return result<>{};
    const std::error_code error = served.self()->error();
    co_return fail(error ? error : make_error_code(errc::end_of_stream));
}

void client_core::shut_down() noexcept {
    if (living_ != nullptr) {
        living_->shutdown();
    } else {
        attempts_.request_stop();
    }
}

void client_core::close() noexcept {
    if (living_ != nullptr) {
        living_->close();
    } else {
        attempts_.request_stop();
    }
}

void client_core::end_here() noexcept {
    if (living_ != nullptr) {
        living_->end_here();
    } else {
        attempts_.request_stop();
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
    // Without the lock: a loop that has been stopped drops it inside the call.
    loop_.post(activity{shared_from_this()});
}

template <class Function>
void client_core::post_locked(Function function) {
    // Before the activity runs it looks at is_wanted_.
    if (queue_ == nullptr) return;
    auto call = [self = shared_from_this(), function] { function(*self); };
    queue_->offer(*new posted_call<decltype(call)>{std::move(call)});
}

template <class Function>
void client_core::end(Function function) {
    {
        const std::lock_guard locked{mutex_};
        is_wanted_ = false;
        if (std::this_thread::get_id() != thread_) return post_locked(function);
    }
    function(*this);
}

void client_core::retire() {
    std::unique_lock locked{mutex_};
    is_retired_ = true;
    is_wanted_ = false;
    // An activity that does not run yet will see that.
    if (thread_ == std::thread::id{}) return;
    if (thread_ == std::this_thread::get_id()) {
        locked.unlock();
        return end_here();
    }
    post_locked([](client_core& core) { core.end_here(); });
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
    core_->disconnect();
}

void client::stop() {
    core_->stop();
}

connection_ptr client::connection() const {
    return core_->connection();
}

} // namespace callbacks
} // namespace simplenet::v0
