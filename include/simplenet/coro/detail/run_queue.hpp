#pragma once
// scope, suspension and run_queue: how a stop finds what waits, and who runs next. Layer coro.
// Every coroutine of the library runs from a run_queue; the event loop is one with I/O added.

#include <simplenet/core/detail/contract.hpp>
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

/// Why the operations of a scope fail. `teardown` is a stop that shields do not hold against.
enum class stop_reason : std::uint8_t { none, canceled, deadline, teardown };

/// @pre `reason` is not none.
[[nodiscard]] inline std::error_code error_of(stop_reason reason) noexcept {
    return reason == stop_reason::deadline ? make_error_code(errc::deadline_exceeded)
                                           : std::make_error_code(std::errc::operation_canceled);
}

/// Something to do on the loop's thread, soon.
///
/// Invariant: in at most one ready list, once. Owned by whoever it is a part of, which keeps it
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

/// First in, first out; singly linked; borrows its nodes.
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

    /// All nodes, for pop(); null if there are none.
    [[nodiscard]] ready_node* take() noexcept {
        ready_node* const all = first_;
        clear();
        return all;
    }
    /// The first node, which leaves.
    ///
    /// @pre not empty.
    [[nodiscard]] ready_node& pop_front() noexcept {
        ready_node& first = *first_;
        first_ = first.next_ready_;
        if (first_ == nullptr) end_ = &first_;
        return first;
    }
    /// The first node of what take() gave, which it leaves.
    ///
    /// @pre `list` is not null.
    [[nodiscard]] static ready_node& pop(ready_node*& list) noexcept {
        ready_node& first = *list;
        list = first.next_ready_;
        return first;
    }

private:
    ready_node* first_ = nullptr;
    ready_node** end_ = &first_; // where the next one goes: a push has no branch
};

/// A coroutine_handle without an initial value.
class coroutine_slot {
public:
    coroutine_slot& operator=(std::coroutine_handle<> coroutine) noexcept {
        address_ = coroutine.address();
        return *this;
    }
    operator std::coroutine_handle<>() const noexcept {
        return std::coroutine_handle<>::from_address(address_);
    }

private:
    void* address_;
};

/// Looks at what is part of a tree of tasks, for dump_tasks().
class inspector {
public:
    /// What awaits goes on in there: no chain of its own.
    virtual void inside(scope& inner) = 0;
    /// This one runs beside it.
    virtual void beside(chain& child) = 0;

protected:
    ~inspector() = default;
};

/// What a suspended coroutine waits for: an operation, a join, a nested scope.
///
/// Lives in the awaiter, so in the coroutine frame. Invariant: from suspension to resumption it
/// is `within_->current`, which is how a stop reaches it.
class suspension : public ready_node {
public:
    /// A stop reached the scope this waits in. Never resumes anything: ends early, through the
    /// ready list, if it can. May come after the end is already on its way.
    virtual void on_stop(stop_reason reason) noexcept = 0;

    /// By default what is ready is the coroutine.
    void run() noexcept override { resume(); }

    /// Says for people, at the end of `text`, what it waits for. By default the name of its type.
    virtual void describe(std::string& text);
    /// Shows the scopes and chains that are part of it.
    virtual void show(inspector&) {}
    /// Who waits.
    [[nodiscard]] std::coroutine_handle<> caller() const noexcept { return caller_; }

protected:
    suspension() noexcept = default;
    // Awaitables move while idle: the copy starts idle too.
    suspension(suspension&&) noexcept {}
    ~suspension() = default;

    inline void suspend(std::coroutine_handle<> caller, scope& within) noexcept;
    inline void resume() noexcept;

    // Both are set when it suspends: an operation that ends at its start would pay for
    // initialisers.
    coroutine_slot caller_;
    scope* within_; // borrowed: a scope outlives what waits in it
};

/// Told of every suspension in a debug build: how tests stop a task at each of them.
class suspension_observer {
public:
    /// In the middle of an await_suspend: must neither resume nor stop anything.
    virtual void on_suspend(const scope& within) noexcept = 0;

protected:
    ~suspension_observer() = default;
};

/// A set of child chains that a stop of its scope must reach.
class child_set : public list_hook<> {
public:
    virtual void on_stop(stop_reason reason) noexcept = 0;
    /// The scope it belonged to has ended; `enclosing` takes over.
    virtual void on_move(scope& enclosing) noexcept = 0;
    /// The run_queue has ended, and every child with it. Told before it is gone.
    virtual void on_queue_end() noexcept = 0;
    /// Shows the children that have not ended.
    virtual void show(inspector&) {}

protected:
    child_set() noexcept = default;
    ~child_set() = default;
};

/// A part of the tree of tasks that can be stopped as one.
///
/// One chain of coroutines runs in it, and suspends at one place at a time (`current`); what
/// runs beside that chain hangs in `children`. Owned by the awaiter or chain it is a part of.
/// Loop thread only.
class scope {
public:
    scope() noexcept = default;
    scope(scope&&) noexcept {} // idle awaitables move
    scope& operator=(scope&&) = delete;
    ~scope() { end(); }

    /// Becomes a part of `parent` that is already stopped if `parent` is.
    void begin(scope& parent) noexcept { begin(parent, parent.reason); }
    void begin(scope& parent, stop_reason already) noexcept {
        enclosing = &parent;
        queue = parent.queue;
        // Not even a shield begins outside of a teardown.
        torn_down = parent.torn_down;
        reason = torn_down && already == stop_reason::none ? stop_reason::teardown : already;
    }

    /// Hands what children there are to the enclosing scope.
    void end() noexcept {
        if (!children.empty()) hand_over();
    }

    [[nodiscard]] bool stopped() const noexcept { return reason != stop_reason::none; }

    /// Level-triggered: every later operation here fails with the first reason. Resumes nothing.
    void stop(stop_reason why) noexcept;

    /// After `current` was set.
    inline void tell_observer() const noexcept;

    stop_reason reason = stop_reason::none; // of the stop that came first
    bool torn_down = false;                 // teardown came, perhaps after another stop
    suspension* current = nullptr;          // what the chain waits for
    scope* enclosing = nullptr;             // null only for the top of a run_queue
    run_queue* queue = nullptr;
    chain* owner = nullptr; // set if this is the inner scope of a chain
    intrusive_list<child_set> children;

private:
    void hand_over() noexcept;
};

/// The chain whose coroutines run in `within`; null for the top of a queue.
[[nodiscard]] chain* owner_of(const scope& within) noexcept;

/// Prints to standard error which task runs on this thread, and where it awaits: for contract
/// violations.
void tell_task() noexcept;

/// Called with an exception that nobody can receive any more.
using unhandled_hook = void (*)(std::exception_ptr);

/// Runs coroutines one after the other on one thread. The owner decides when.
///
/// Teardown, by the owner's destructor: begin_teardown(), run_ready() until no chain is left or
/// nothing is ready and nothing in flight, destroy_chains().
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

    /// Stops a debug build that is not on the thread that runs this queue, or before that on the
    /// one that made it.
    // The address of a thread-local tells threads apart.
    void debug_check_thread() const noexcept {
        SIMPLENET_DEBUG_EXPECTS(thread_ == &current_, "what belongs to an event loop can only be "
                                                      "used on the loop's thread");
    }

    void push(ready_node& node) noexcept { ready_.push_back(node); }

    /// Resumes `coroutine` in `within`, and whatever it hands over to, with a flat stack.
    void resume(std::coroutine_handle<> coroutine, scope& within) noexcept {
        here = &within;
        continues_ = true;
        coroutine.resume();
        while (next_)
            std::exchange(next_, nullptr).resume();
        continues_ = false;
        here = &top; // what ran may be gone
    }
    /// The coroutine that resume() continues with when the running one returns to it. The last
    /// thing its await_suspend does.
    void continue_with(std::coroutine_handle<> coroutine) noexcept {
        if (continues_ && !next_) [[likely]] {
            next_ = coroutine;
        } else {
            continue_here(coroutine);
        }
    }

    /// Runs what was ready at the call, each with a new budget; returns how many.
    // Inline, as it is a part of every turn of a loop.
    std::size_t run_ready() noexcept {
        std::size_t count = 0;
        // What becomes ready on the way waits for the next call, so that I/O is not starved.
        for (ready_node* batch = ready_.take(); batch != nullptr; ++count) {
            inline_left_ = inline_turns_per_resume;
            ready_list::pop(batch).run();
        }
        return count;
    }
    /// Runs what has been ready longest; how much that was: an operation that finished at its start
    /// costs a system call, so it counts like two coroutines that ran.
    ///
    /// @pre has_ready().
    std::size_t run_first() noexcept {
        inline_left_ = inline_turns_per_resume;
        ready_.pop_front().run();
        return 1 + std::size_t{2} * (inline_turns_per_resume - inline_left_);
    }

    /// One more operation that may finish at its start without passing through the loop.
    // Keeps a fast peer from starving the other coroutines of the thread.
    [[nodiscard]] bool take_inline_turn() noexcept {
        if (inline_left_ == 0) return false;
        --inline_left_;
        return true;
    }

    /// An operation that did the work of so many.
    void spend_inline_turns(unsigned count) noexcept {
        inline_left_ -= count < inline_left_ ? count : inline_left_;
    }

    /// Counts a refused operation of a loop that is being destroyed. False: its task had its
    /// 1000 chances and is not to be resumed again.
    ///
    /// Joining children counts as well: a task could go on for ever with children that end.
    [[nodiscard]] bool tolerate_refusal(scope& within) noexcept {
        return !dying || count_refusal(within);
    }

    /// Resumes a suspension with the reason of the stop at a later turn, from its start.
    void refuse(suspension& refused, scope& within) noexcept;

    /// Takes a chain that is not a part of another one's frame. It starts when it is pushed.
    inline void add(chain& added) noexcept;

    /// A coroutine in `maker` starts `made`, which in a teardown is as near to its end as its
    /// maker is: or tasks that start others would never run out. False: it is not to be started.
    [[nodiscard]] bool may_start(chain& made, const scope& maker) noexcept {
        return !dying || inherit_refusals(made, maker);
    }
    /// It reached its end; until it unlinks itself, teardown still frees it.
    void chain_ended() noexcept {
        SIMPLENET_EXPECTS(live_chains_ > 0, "more tasks ended than were started");
        --live_chains_;
    }
    /// One that had counted as ended, waiting for no more than to be told, has something to do.
    void chain_continues() noexcept { ++live_chains_; }

    void report_unhandled(std::exception_ptr exception) noexcept {
        report_unhandled(on_unhandled, std::move(exception));
    }
    static void report_unhandled(unhandled_hook hook, std::exception_ptr exception) noexcept;

    /// Appends every task that has not ended to `text`, each once: children below their parents.
    /// Safe wherever a task or a destructor may call it.
    void describe_tasks(std::string& text);

    scope top;                               // encloses every root; stopped only by teardown
    scope* here;                             // of the coroutine that runs; else the top
    unhandled_hook on_unhandled = nullptr;   // null: std::terminate
    bool dying = false;                      // teardown: refusals are counted
    bool destroying = false;                 // and what was left is being destroyed
    unsigned depth = 0;                      // starts of tasks nested on the stack, see task.hpp
    suspension_observer* observer = nullptr; // of tests; the release build does not look
    std::int64_t clock_ns = 0; // the owner's latest reading of the monotonic clock, if it has any

    static constexpr unsigned inline_turns_per_resume = 64;
    static constexpr unsigned refusals_tolerated = 1000;

protected:
    ~run_queue();

    /// Makes this the queue of the calling thread while it lives; queues do not nest.
    class activation {
    public:
        explicit activation(run_queue& queue) noexcept;
        activation(const activation&) = delete;
        activation& operator=(const activation&) = delete;
        ~activation();
    };

    [[nodiscard]] bool has_ready() const noexcept { return !ready_.empty(); }
    [[nodiscard]] std::size_t live_chains() const noexcept { return live_chains_; }
    /// Stops every chain, shields or not; from here on refusals are counted.
    void begin_teardown() noexcept;
    /// Destroys what teardown could not talk into ending, newest first. @pre nothing in flight.
    void destroy_chains() noexcept;

private:
    void continue_here(std::coroutine_handle<> coroutine) noexcept;
    bool inherit_refusals(chain& made, const scope& maker) noexcept;
    static bool count_refusal(const scope& within) noexcept;

    inline static constinit thread_local run_queue* current_ = nullptr;
    const void* thread_ = &current_; // whose it is, for debug builds

    ready_list ready_;
    std::coroutine_handle<> next_;
    bool continues_ = false;   // resume() is on the stack, and will see next_
    unsigned inline_left_ = 0; // of the turns of the coroutine that runs
    std::size_t live_chains_ = 0;
    std::uint64_t chains_added_ = 0;
    intrusive_list<chain> chains_; // in order of their making; ended ones until they are freed
};

/// A chain of coroutines that runs beside the one that started it: a root and what it awaits.
///
/// Owns the root's frame. Ends when the root reaches its final suspension.
class chain : public ready_node, public list_hook<> {
public:
    /// The root is at its final suspension. Must neither destroy nor resume: tell whoever waits
    /// through the ready list.
    virtual void finished() noexcept = 0;
    /// Teardown: the frame is destroyed where it is suspended, and nobody is told. Also of a
    /// chain that has ended and waits to be freed.
    virtual void abandon() noexcept = 0;

    /// The promise of its root, if that has a frame.
    [[nodiscard]] virtual const promise_base* first() const noexcept { return nullptr; }

    scope inner;

    // For people.
    std::uint64_t number = 0;     // in the order of their making; 0: part of another one's frame
    std::int64_t made_ns = 0;     // clock_ns of its queue at that time
    std::unique_ptr<char[]> name; // ends with a NUL; null: none

    // Last, so that the small members of who derives find room beside them.
    unsigned refusals = 0;
    bool over = false; // it has ended, or is not counted as alive: not shown

protected:
    chain() noexcept { inner.owner = this; }
    chain(chain&&) noexcept
        : chain{} {} // idle awaitables move
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
    scope& within = *within_;
    within.current = nullptr;
    within.queue->resume(caller_, within);
}

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
