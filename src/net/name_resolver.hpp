#pragma once
// name_resolver: the threads that call the system's resolver, and how a coroutine waits for them.
// Layer net, private. One resolver serves the whole process and outlives loops.

#include "sys/names.hpp"
#include "threads/one_for_process.hpp"
#include "threads/posting_queue.hpp"

#include <simplenet/coro/task.hpp>

#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace simplenet::v0::detail {

class lookup_operation;

struct in_lookup; // tag of a waiter's list hook

/// One question, asked once for all its waiters. Guarded by its resolver's mutex, except members
/// that say otherwise.
// queued     in the queue, not asked yet; leaves it with its last waiter
// running    a thread asks; continues without waiters, because getaddrinfo(3) cannot be interrupted
// answered   only its former waiters refer to it
struct lookup : list_hook<> {
    enum class state : std::uint8_t { queued, running, answered };

    state now = state::queued;
    const sys::name_question* question = nullptr; // the key of its place in the table
    intrusive_list<lookup_operation, in_lookup> waiters;
    sys::name_answer answer; // written by its thread, read after it is answered; no mutex
};

/// Asks on a few threads of its own, which start on demand and end when they have been idle for
/// long.
///
/// Equal questions that are asked at the same time are merged. Nothing is cached: getaddrinfo(3)
/// does not say how long an answer is valid, and the system has caches that know.
///
/// Bounded: at most `most_threads` lookups run, so at most that many can have been abandoned; the
/// queue holds only questions with waiters. Any thread.
class name_resolver : private one_for_process<name_resolver> {
    friend one_for_process<name_resolver>;

public:
    using function = std::function<sys::name_answer(const sys::name_question&)>;

    struct limits {
        std::size_t most_threads = 8;
        std::chrono::milliseconds idle = std::chrono::seconds{10}; // after this a thread ends
    };

    explicit name_resolver(function look_up, limits limits);
    name_resolver(const name_resolver&) = delete;
    name_resolver& operator=(const name_resolver&) = delete;
    /// Waits for the threads. Only in resolvers that tests create: the process's own is never
    /// destroyed.
    ~name_resolver();

    /// The resolver of this process: a child of fork(2) gets its own.
    // Nobody waits for its threads at exit: a thread in getaddrinfo(3) can neither be stopped
    // (pthread_cancel leaks its locks and memory) nor waited for (half a minute).
    [[nodiscard]] static name_resolver& of_process();

    /// For tests: replaces the process's resolver during its lifetime.
    class replacement {
    public:
        explicit replacement(name_resolver& by) noexcept;
        replacement(const replacement&) = delete;
        replacement& operator=(const replacement&) = delete;
        ~replacement();

    private:
        name_resolver* before_;
    };

    /// Assigns a lookup to `waiter`, and posts the waiter to its loop when there is an answer.
    /// False: no thread could be started, and the answer already says so.
    [[nodiscard]] bool ask(sys::name_question question, lookup_operation& waiter);
    /// The waiter stops waiting. False: it is already posted, and will run.
    [[nodiscard]] bool forget(lookup_operation& waiter) noexcept;

    /// For tests.
    [[nodiscard]] std::size_t threads() const;
    [[nodiscard]] std::size_t questions() const; // queued and running

private:
    void start_thread();
    void work() noexcept;
    void finish(lookup& answered) noexcept;

    using table = std::map<sys::name_question, std::shared_ptr<lookup>>;

    const function look_up_;
    const limits limits_;

    mutable std::mutex guard_;
    std::condition_variable work_; // a question was queued, or the resolver ends
    std::condition_variable gone_; // a thread has ended
    table table_;
    intrusive_list<lookup> queue_;
    std::size_t queued_ = 0;  // in the queue
    std::size_t threads_ = 0; // in total
    std::size_t idle_ = 0;    // of these, waiting for work
    bool ending_ = false;
};

/// Awaits the answer to one question. The loop may end before the answer comes.
class [[nodiscard]] lookup_operation final : public suspension,
                                             public posted,
                                             public list_hook<in_lookup> {
public:
    explicit lookup_operation(sys::name_question question)
        : question_{std::move(question)} {}
    lookup_operation(lookup_operation&& other) noexcept
        : suspension{}
        , posted{}
        , list_hook<in_lookup>{}
        , question_{std::move(other.question_)} {}
    ~lookup_operation();

    static bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) {
        return start(caller, scope_of(caller));
    }
    /// The error is that of the stop or of the resolver, or an errno.
    [[nodiscard]] result<std::shared_ptr<const sys::name_answer>> await_resume();

    void on_stop(stop_reason reason) noexcept override;
    void describe(std::string& text) override { text += "the resolver's answer"; }

private:
    friend name_resolver;
    bool start(std::coroutine_handle<> caller, scope& within);
    void run() noexcept override;    // posted, or on the ready list, never both
    void drop() noexcept override {} // the enclosing frame is destroyed with its loop

    sys::name_question question_;
    name_resolver* resolver_ = nullptr; // borrowed while waiting
    posting_queue* home_ = nullptr;     // notified by the resolver's thread
    std::shared_ptr<lookup> lookup_;
    bool waiting_ = false;
    stop_reason stopped_ = stop_reason::none;
};

} // namespace simplenet::v0::detail
