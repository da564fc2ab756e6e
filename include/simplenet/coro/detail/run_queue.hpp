#pragma once
// scope, suspension and run_queue: how a stop finds waiting operations, and what runs next. Layer
// coro. Every coroutine of the library runs from a run_queue; the event loop is a run_queue with
// I/O.

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/core/detail/figure.hpp>
#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/core/error.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

class chain;
class promise_base;
class run_queue;
class scope;

/// Why the operations of a scope fail. `teardown` is a stop that ignores shields.
enum class stop_reason : std::uint8_t { none, canceled, deadline, teardown };

/// @pre `reason` is not none.
[[nodiscard]] inline std::error_code error_of(stop_reason reason) noexcept {
    return reason == stop_reason::deadline ? make_error_code(errc::deadline_exceeded)
                                           : std::make_error_code(std::errc::operation_canceled);
}

/// Something that runs soon on the loop's thread.
///
/// Invariant: in at most one ready list, once. Owned by the object that contains it, which keeps it
/// alive until run() has begun.
class ready_node {
public:
    ready_node(const ready_node&) = delete;
    ready_node& operator=(const ready_node&) = delete;

    /// May destroy the node.
    virtual void run() noexcept = 0;

protected:
    ready_node() noexcept = default;
    ~ready_node() = default;

private:
    friend class ready_list;
    ready_node* next_ready_; // set when it is pushed
};

/// A FIFO; singly linked; borrows its nodes.
class ready_list {
public:
    ready_list() noexcept = default;
    ready_list(const ready_list&) = delete;
    ready_list& operator=(const ready_list&) = delete;

    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

    void push_back(ready_node& node) noexcept {
        node.next_ready_ = nullptr;
        *end_ = &node;
        end_ = &node.next_ready_;
    }

    void clear() noexcept {
        first_ = nullptr;
        end_ = &first_;
    }

    /// Takes all nodes, for pop(); null if there are none.
    [[nodiscard]] ready_node* take() noexcept {
        ready_node* const all = first_;
        clear();
        return all;
    }
    /// Removes and returns the first node.
    ///
    /// @pre not empty.
    [[nodiscard]] ready_node& pop_front() noexcept {
        ready_node& first = *first_;
        first_ = first.next_ready_;
        if (first_ == nullptr) end_ = &first_;
        return first;
    }
    /// Removes and returns the first node of a list from take().
    ///
    /// @pre `list` is not null.
    [[nodiscard]] static ready_node& pop(ready_node*& list) noexcept {
        ready_node& first = *list;
        list = first.next_ready_;
        return first;
    }

private:
    ready_node* first_ = nullptr;
    ready_node** end_ = &first_; // where the next node goes, so that a push has no branch
};

/// A coroutine_handle without an initial value.
class coroutine_slot {
public:
    coroutine_slot& operator=(std::coroutine_handle<> coroutine) noexcept {
        address_ = coroutine.address();
        return *this;
    }
    // NOLINTNEXTLINE(google-explicit-constructor): it is one.
    operator std::coroutine_handle<>() const noexcept {
        return std::coroutine_handle<>::from_address(address_);
    }

private:
    void* address_;
};

/// Visits the parts of a tree of tasks, for dump_tasks().
class inspector {
public:
    /// The awaiting chain continues in `inner`; it is not a chain of its own.
    virtual void inside(scope& inner) = 0;
    /// `child` runs beside it.
    virtual void beside(chain& child) = 0;

protected:
    ~inspector() = default;
};

/// An operation, a join or a nested scope for which a suspended coroutine waits.
///
/// Lives in the awaiter, so in the coroutine frame. Invariant: from suspension to resumption it is
/// `within_->current`, through which a stop reaches it.
class suspension : public ready_node {
public:
    /// A stop reached the enclosing scope. Resumes nothing: ends early through the ready list, if
    /// possible. May be called when the end is already on its way.
    virtual void on_stop(stop_reason reason) noexcept = 0;

    /// By default a ready suspension resumes the coroutine.
    void run() noexcept override { resume(); }

    /// Appends a description of the wait to `text`, for people. By default the name of the type.
    virtual void describe(std::string& text);
    /// Shows the scopes and chains inside it.
    virtual void show(inspector&) {}
    /// The waiting coroutine.
    [[nodiscard]] std::coroutine_handle<> caller() const noexcept { return caller_; }

protected:
    suspension() noexcept = default;
    // Awaitables move while idle: the copy starts idle too.
    suspension(suspension&&) noexcept {}
    ~suspension() = default;

    inline void suspend(std::coroutine_handle<> caller, scope& within) noexcept;
    inline void resume() noexcept;
    /// The same, for a caller that knows the queue of its scope.
    inline void resume_on(run_queue& queue) noexcept;

    // Both are set on suspension: an operation that ends at its start would pay for initialisers.
    coroutine_slot caller_;
    scope* within_; // borrowed: a scope outlives what waits in it
};

/// Notified of every suspension in a debug build, so that tests can stop a task at each of them.
class suspension_observer {
public:
    /// Called inside an await_suspend: must neither resume nor stop anything.
    virtual void on_suspend(const scope& within) noexcept = 0;

protected:
    ~suspension_observer() = default;
};

/// A set of child chains that a stop of its scope must reach.
class child_set : public list_hook<> {
public:
    virtual void on_stop(stop_reason reason) noexcept = 0;
    /// Its scope has ended; `enclosing` takes over.
    virtual void on_move(scope& enclosing) noexcept = 0;
    /// The run_queue has ended, and every child with it. Called before it is gone.
    virtual void on_queue_end() noexcept = 0;
    /// Shows the children that have not ended.
    virtual void show(inspector&) {}

protected:
    child_set() noexcept = default;
    ~child_set() = default;
};

/// A part of the tree of tasks that can be stopped as a unit.
///
/// One chain of coroutines runs in it and is suspended at one place at a time (`current`);
/// `children` run beside that chain. Owned by the awaiter or chain that contains it. Loop thread
/// only.
class scope {
public:
    scope() noexcept = default;
    scope(scope&&) noexcept {} // idle awaitables may be moved
    scope& operator=(scope&&) = delete;
    ~scope() { end(); }

    /// Becomes a part of `parent`, already stopped if `parent` is.
    void begin(scope& parent) noexcept { begin(parent, parent.reason); }
    void begin(scope& parent, stop_reason already) noexcept {
        enclosing = &parent;
        queue = parent.queue;
        // During a teardown even a shield begins stopped.
        torn_down = parent.torn_down;
        reason = torn_down && already == stop_reason::none ? stop_reason::teardown : already;
    }

    /// Passes its remaining children to the enclosing scope.
    void end() noexcept {
        if (!children.empty()) hand_over();
    }

    [[nodiscard]] bool stopped() const noexcept { return reason != stop_reason::none; }

    /// Level-triggered: every later operation here fails with the first reason. Resumes nothing.
    void stop(stop_reason why) noexcept;

    /// Call after setting `current`.
    inline void tell_observer() const noexcept;

    stop_reason reason = stop_reason::none; // the first one
    bool torn_down = false;                 // by teardown, perhaps after another stop
    suspension* current = nullptr;          // for which the chain waits
    scope* enclosing = nullptr;             // null only for the top of a run_queue
    run_queue* queue = nullptr;
    chain* owner = nullptr; // set if this is the inner scope of a chain
    intrusive_list<child_set> children;

private:
    void hand_over() noexcept;
};

/// The chain whose coroutines run in `within`; null for the top of a queue.
[[nodiscard]] chain* owner_of(const scope& within) noexcept;

/// Prints to standard error which task runs on this thread, and where it awaits, for contract
/// violations.
void tell_task() noexcept;

/// Thrown instead of the result of work on another thread that a stop or the end of that thread
/// prevented, if the type of the result cannot hold an error.
class work_prevented final : public std::system_error {
public:
    using std::system_error::system_error;
};
/// Whether `exception`, which has left a task, says only that the task was stopped for `reason`: it
/// is a work_prevented, or the error of a stopped operation that the program has thrown, for
/// example with or_throw(). Such a task has not failed. Always false if `reason` is none.
[[nodiscard]] bool is_only_stop(const std::exception_ptr& exception, stop_reason reason) noexcept;

/// Called with an exception that nobody can receive any more.
using unhandled_hook = void (*)(std::exception_ptr);

/// Runs coroutines one at a time on one thread. The owner decides when.
///
/// Teardown, by the owner's destructor: begin_teardown(); run_ready() until no chain is left, or
/// until nothing is ready and nothing in flight; destroy_chains().
class run_queue {
public:
    run_queue() noexcept;
    run_queue(const run_queue&) = delete;
    run_queue& operator=(const run_queue&) = delete;

    /// The queue that runs on this thread, or null.
    [[nodiscard]] static run_queue* current() noexcept { return current_; }
    /// The queue that runs on this thread. @pre there is one.
    [[nodiscard]] static run_queue& require_current() noexcept {
        SIMPLENET_EXPECTS(current_ != nullptr,
                          "this needs a running event loop on the calling thread");
        return *current_;
    }

    /// In a debug build, stops the program on a thread other than the one that runs this queue or,
    /// before it runs, the one that created it.
    // The address of a thread-local variable identifies the thread.
    void debug_check_thread() const noexcept {
        SIMPLENET_DEBUG_EXPECTS(thread_ == &current_, "objects of an event loop can only be "
                                                      "used on the loop's thread");
    }

    void push(ready_node& node) noexcept { ready_.push_back(node); }

    /// Resumes `coroutine` in `within`, and the coroutines it hands over to, with a flat stack.
    void resume(std::coroutine_handle<> coroutine, scope& within) noexcept {
        here = &within;
        continues_ = true;
        coroutine.resume();
        while (next_) [[unlikely]] // a coroutine usually suspends
            std::exchange(next_, nullptr).resume();
        continues_ = false;
        here = &top; // the coroutine may be gone
    }
    /// Sets the coroutine with which resume() continues when the running one returns to it. The
    /// last thing that an await_suspend does.
    void continue_with(std::coroutine_handle<> coroutine) noexcept {
        if (continues_ && !next_) [[likely]] {
            next_ = coroutine;
        } else {
            continue_here(coroutine);
        }
    }

    /// Runs the nodes that were ready at the call, each with a new budget; returns their number.
    // Inline, because it is a part of every turn of a loop.
    std::size_t run_ready() noexcept {
        std::size_t count = 0;
        // Nodes that become ready meanwhile wait for the next call, so that I/O is not starved.
        for (ready_node* batch = ready_.take(); batch != nullptr; ++count) {
            inline_left_ = inline_turns_per_resume;
            ready_list::pop(batch).run();
        }
        return count;
    }
    /// Runs the first ready node and returns its weight: an operation that finished at its start
    /// cost a system call, so it counts like two coroutines.
    ///
    /// @pre has_ready().
    std::size_t run_first() noexcept {
        inline_left_ = inline_turns_per_resume;
        ready_.pop_front().run();
        return 1 + std::size_t{2} * (inline_turns_per_resume - inline_left_);
    }

    /// Whether one more operation may finish at its start without passing through the loop.
    // Keeps a fast peer from starving the other coroutines of the thread.
    [[nodiscard]] bool take_inline_turn() noexcept {
        if (inline_left_ == 0) return false;
        --inline_left_;
        return true;
    }

    /// Accounts for an operation that did the work of `count` operations.
    void spend_inline_turns(unsigned count) noexcept {
        inline_left_ -= count < inline_left_ ? count : inline_left_;
    }

    /// Counts a refused operation while the loop is being destroyed. False: the task has used its
    /// 1000 refusals and must not be resumed again.
    ///
    /// Joining children counts too: otherwise a task could continue for ever with children that
    /// end.
    [[nodiscard]] bool tolerate_refusal(scope& within) noexcept {
        return !dying || count_refusal(within);
    }

    /// Resumes a suspension with the reason of the stop in a later turn, counted from its start.
    void refuse(suspension& refused, scope& within) noexcept;

    /// Takes a chain that is not part of another chain's frame. It starts when it is pushed.
    inline void add(chain& added) noexcept;

    /// A coroutine in `maker` starts `made`, which in a teardown inherits the count of its maker:
    /// otherwise tasks that start others would never run out. False: it must not be started.
    [[nodiscard]] bool may_start(chain& made, const scope& maker) noexcept {
        return !dying || inherit_refusals(made, maker);
    }
    /// A chain reached its end; until it unlinks itself, teardown still frees it.
    void chain_ended() noexcept {
        SIMPLENET_EXPECTS(live_chains_.own() > 0, "more tasks ended than were started");
        --live_chains_;
    }
    /// A chain that counted as ended, because it only waited to be told, has work again.
    void chain_continues() noexcept { ++live_chains_; }

    void report_unhandled(std::exception_ptr exception) noexcept {
        report_unhandled(on_unhandled, std::move(exception));
    }
    /// The same for one that left `within`, unless it is_only_stop().
    void report_unhandled(const scope& within, std::exception_ptr exception) noexcept {
        if (is_only_stop(exception, within.reason)) return;
        report_unhandled(on_unhandled, std::move(exception));
    }
    static void report_unhandled(unhandled_hook hook, std::exception_ptr exception) noexcept;

    /// Appends every task that has not ended to `text`, each once, children below their parents.
    /// Safe wherever a task or a destructor may call it.
    void describe_tasks(std::string& text);

    scope top;                               // encloses every root; stopped only by teardown
    scope* here;                             // of the running coroutine; else the top
    unhandled_hook on_unhandled = nullptr;   // null: std::terminate
    bool dying = false;                      // teardown: refusals are counted
    bool destroying = false;                 // and the remaining chains are being destroyed
    unsigned depth = 0;                      // nested starts of tasks on the stack, see task.hpp
    suspension_observer* observer = nullptr; // for tests; release builds ignore it
    std::int64_t clock_ns = 0; // the owner's latest reading of the monotonic clock, if it has any

    static constexpr unsigned inline_turns_per_resume = 64;
    static constexpr unsigned refusals_tolerated = 1000;

protected:
    ~run_queue();

    /// Makes this the queue of the calling thread while it lives. Queues do not nest, but for one
    /// that ends without having run: a coroutine may have created it, and drop it.
    class activation {
    public:
        explicit activation(run_queue& queue, bool may_nest = false) noexcept;
        activation(const activation&) = delete;
        activation& operator=(const activation&) = delete;
        ~activation();

    private:
        run_queue* const outer_;
    };

    [[nodiscard]] bool has_ready() const noexcept { return !ready_.empty(); }
    [[nodiscard]] const figure<std::size_t>& live_chains() const noexcept { return live_chains_; }
    /// Stops every chain, even inside shields; from here on refusals are counted.
    void begin_teardown() noexcept;
    /// Destroys the chains that teardown could not end, newest first. @pre nothing in flight.
    void destroy_chains() noexcept;

private:
    void continue_here(std::coroutine_handle<> coroutine) noexcept;
    bool inherit_refusals(chain& made, const scope& maker) noexcept;
    static bool count_refusal(const scope& within) noexcept;

    inline static constinit thread_local run_queue* current_ = nullptr;
    const void* thread_ = &current_; // identifies the thread, for debug builds

    ready_list ready_;
    std::coroutine_handle<> next_;
    bool continues_ = false;          // resume() is on the stack, and will check next_
    unsigned inline_left_ = 0;        // inline turns of the running coroutine
    figure<std::size_t> live_chains_; // that have not ended
    std::uint64_t chains_added_ = 0;
    intrusive_list<chain> chains_; // in order of creation; ended ones until they are freed
};

/// A chain of coroutines that runs beside the one that started it: a root and all that it awaits.
///
/// Owns the root's frame. Ends when the root reaches its final suspension.
class chain : public ready_node, public list_hook<> {
public:
    /// The root is at its final suspension. Must neither destroy nor resume: notifies waiters
    /// through the ready list.
    virtual void finished() noexcept = 0;
    /// Teardown: destroys the frame where it is suspended, and notifies nobody. Also called for a
    /// chain that has ended and waits to be freed.
    virtual void abandon() noexcept = 0;

    /// The promise of its root, if the root has a frame.
    [[nodiscard]] virtual const promise_base* first() const noexcept { return nullptr; }

    scope inner;

    // For people.
    std::uint64_t number = 0;     // in order of creation; 0: part of another chain's frame
    std::int64_t made_ns = 0;     // clock_ns of its queue at that time
    std::unique_ptr<char[]> name; // ends with a NUL; null: none

    // Last, so that small members of derived classes fit beside them.
    unsigned refusals = 0;
    bool over = false; // has ended, or does not count as alive: not shown

protected:
    chain() noexcept { inner.owner = this; }
    chain(chain&&) noexcept
        : chain{} {} // idle awaitables may be moved
    ~chain() = default;
};

inline void run_queue::add(chain& added) noexcept {
    chains_.push_back(added);
    ++live_chains_;
    added.number = ++chains_added_;
    added.made_ns = clock_ns;
}

inline void suspension::suspend(std::coroutine_handle<> caller, scope& within) noexcept {
    caller_ = caller;
    within_ = &within;
    within.current = this;
    within.tell_observer();
}

inline void scope::tell_observer() const noexcept {
#ifndef NDEBUG
    if (queue->observer != nullptr) queue->observer->on_suspend(*this);
#endif
}

inline void suspension::resume() noexcept {
    resume_on(*within_->queue);
}

inline void suspension::resume_on(run_queue& queue) noexcept {
    scope& within = *within_;
    within.current = nullptr;
    queue.resume(caller_, within);
}

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
