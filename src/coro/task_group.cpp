#include <simplenet/coro/task_group.hpp>

namespace simplenet::v0 {
namespace detail {

group_child_base::group_child_base(group_core& group) noexcept
    : group_{&group} {}

void group_child_base::run() noexcept {
    if (state_ == state::ended) {
        delete this; // in its last turn on the ready list: finished() still needed the frame
        return;
    }
    state_ = state::running;
    start();
}

void group_child_base::finished() noexcept {
    over = true;
    state_ = state::ended;
    run_queue& queue = *inner.queue;
    queue.chain_ended();
    inner.end();
    // Before the joiner, so that the child's locals are gone when the join returns.
    queue.push(*this);
    group_->ended(*this);
}

void group_child_base::abandon() noexcept {
    if (state_ != state::ended) drop();
    delete this;
}

/// Destroys it where it is suspended.
void group_child_base::drop() noexcept {
    over = true;
    state_ = state::ended;
    inner.current = nullptr; // see run_queue::destroy_chains()
    inner.queue->chain_ended();
    destroy_frame();
    group_->forget(*this);
}

group_core::group_core(scope& within, group_options options) noexcept
    : within_{&within}
    , limit_{options.limit}
    , reason_{within.reason}
    , outside_{within.reason} {
    within.children.push_back(*this);
}

group_core::~group_core() {
    if (size_ != 0 && within_->queue->destroying) {
        // A younger task owned the group: its children must be destroyed first.
        for (auto* list : {&queued_, &children_}) {
            while (!list->empty()) {
                group_child_base& child = list->back();
                static_cast<list_hook<>&>(child).unlink();
                child.abandon();
            }
        }
    }
    if (size_ != 0 && std::uncaught_exceptions() != 0) drop_unstarted();
    report();
    SIMPLENET_EXPECTS(size_ == 0,
                      "a task_group was destroyed with children alive: join it first; where an "
                      "exception may come before the join, use with_group()");
}

/// Destroys the children that have not begun, newest first, while the objects they refer to exist.
void group_core::drop_unstarted() noexcept {
    while (!queued_.empty()) {
        group_child_base& child = queued_.back();
        child.drop();
        delete &child;
    }
    while (!children_.empty() && children_.back().state_ == group_child_base::state::ready)
        children_.back().drop(); // freed by the ready list, or at the end of the loop
}

void group_core::add(group_child_base& child, bool counted) noexcept {
    SIMPLENET_EXPECTS(within_ != nullptr, "the event loop of this task_group is gone");
    run_queue& queue = *within_->queue;
    queue.debug_check_thread();
    child.counted_ = counted;
    child.inner.begin(*within_, reason_);
    queue.add(child);
    ++size_;
    if (!counted) ++bodies_;
    const bool starts = queue.may_start(child, *queue.here);
    if (counted && limit_ != 0 && running_ == limit_) {
        queued_.push_back(child);
        return;
    }
    if (counted) ++running_;
    children_.push_back(child);
    if (starts) queue.push(child);
}

void group_core::stop(stop_reason reason) noexcept {
    if (within_ != nullptr) within_->queue->debug_check_thread();
    if (reason_ == stop_reason::none) reason_ = reason;
    children_.for_each([reason](group_child_base& child) { child.inner.stop(reason); });
    queued_.for_each([reason](group_child_base& child) { child.inner.stop(reason); });
}

void group_core::stop_from_outside(stop_reason reason) noexcept {
    if (outside_ == stop_reason::none) outside_ = reason;
    stop(reason);
}

void group_core::on_move(scope& enclosing) noexcept {
    within_ = &enclosing;
    children_.for_each([&](group_child_base& child) { child.inner.enclosing = &enclosing; });
    queued_.for_each([&](group_child_base& child) { child.inner.enclosing = &enclosing; });
}

void group_core::on_queue_end() noexcept {
    report();
    within_ = nullptr;
}

void group_core::show(inspector& to) {
    for (auto* list : {&children_, &queued_}) {
        list->for_each([&](group_child_base& child) { to.beside(child); });
    }
}

void group_core::report() noexcept {
    if (!exception_ || joined_) return;
    joined_ = true;
    within_->queue->report_unhandled(*within_, exception_);
}

void group_core::ended(group_child_base& child) noexcept {
    note_outcome(child);
    if (child.counted_) --running_;
    forget(child);
    start_next();
    if (size_ == 0 && joiner != nullptr) within_->queue->push(*joiner);
}

void group_core::note_outcome(const group_child_base& child) noexcept {
    std::exception_ptr exception = child.exception();
    const result<>* outcome = exception ? nullptr : child.outcome();
    if (outside_ != stop_reason::none && !(outcome != nullptr && *outcome)) interrupted_ = true;

    const bool error = outcome != nullptr && !*outcome;
    if (!exception && !error) return;
    // What only repeats the stop of the group is not a failure.
    if (error && reason_ != stop_reason::none && outcome->error() == error_of(reason_)) return;
    if (exception && is_only_stop(exception, reason_)) return;
    if (failed()) return;
    exception_ = std::move(exception);
    if (error) error_ = outcome->error();
    stop(stop_reason::canceled);
}

void group_core::fail_with(std::exception_ptr exception) noexcept {
    if (!failed()) exception_ = std::move(exception);
    stop(stop_reason::canceled);
}

void group_core::forget(group_child_base& child) noexcept {
    static_cast<list_hook<in_group>&>(child).unlink();
    --size_;
    if (!child.counted_) --bodies_;
}

void group_core::start_next() noexcept {
    if (queued_.empty() || running_ == limit_) return;
    group_child_base& next = queued_.pop_front();
    children_.push_back(next);
    ++running_;
    within_->queue->push(next);
}

result<> group_core::outcome() {
    if (exception_) {
        joined_ = true;
        std::rethrow_exception(exception_);
    }
    if (error_) return fail(error_);
    if (interrupted_) return fail(error_of(outside_));
    return {};
}

bool group_join::start(std::coroutine_handle<> caller, scope& within) noexcept {
    if (group_->ended()) return false;
    suspend(caller, within);
    SIMPLENET_EXPECTS(group_->joiner == nullptr, "one join() of a task_group at a time");
    if (!within.queue->tolerate_refusal(within)) return true;
    group_->joiner = this;
    waiting_ = true;
    if (within.stopped()) group_->stop_from_outside(within.reason);
    return true;
}

void group_join::run() noexcept {
    // Otherwise another child was spawned since: its end will notify again.
    if (group_->ended()) resume();
}

void group_join::describe(std::string& text) {
    text += "join of a group of ";
    text += std::to_string(group_->size());
}

result<> group_join::await_resume() {
    if (waiting_) group_->joiner = nullptr;
    waiting_ = false;
    return group_->outcome();
}

} // namespace detail

inline namespace runtime {

task_group::task_group() noexcept
    : core_{*detail::run_queue::require_current().here, {}} {}

} // namespace runtime
} // namespace simplenet::v0
