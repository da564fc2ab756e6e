#include <simplenet/coro/detail/run_queue.hpp>

namespace simplenet::v0::detail {

void scope::stop(stop_reason why) noexcept {
    // Teardown passes down even where an earlier stop has been: a shield may have held that stop.
    // Once, because tasks that wait for each other form a cycle.
    if (why == stop_reason::teardown ? torn_down : stopped()) return;
    if (why == stop_reason::teardown) torn_down = true;
    if (reason == stop_reason::none) reason = why;
    children.for_each([why](child_set& set) { set.on_stop(why); });
    // Last: an optimising compiler turns this into a jump, and nested scopes use no stack.
    if (current != nullptr) current->on_stop(why);
}

void scope::hand_over() noexcept {
    while (!children.empty()) {
        child_set& orphan = children.pop_front();
        if (enclosing == nullptr) {
            orphan.on_queue_end();
            continue;
        }
        enclosing->children.push_back(orphan);
        orphan.on_move(*enclosing);
        if (enclosing->stopped() && !stopped()) orphan.on_stop(enclosing->reason);
    }
}

run_queue::run_queue() noexcept {
    top.queue = this;
    here = &top;
    on_contract_violation(tell_task);
}

run_queue::~run_queue() {
    SIMPLENET_EXPECTS(chains_.empty(), "a loop was destroyed before its tasks");
}

run_queue::activation::activation(run_queue& queue, bool may_nest) noexcept
    : outer_{current_} {
    SIMPLENET_EXPECTS(outer_ == nullptr || may_nest, "an event loop runs on this thread already");
    current_ = &queue;
    queue.thread_ = &current_;
    queue.here = &queue.top;
}

run_queue::activation::~activation() {
    current_ = outer_;
}

// Reached only if foreign code has resumed one of our coroutines by its handle: outside any
// resume(), or inside one that already has a coroutine to continue with.
void run_queue::continue_here(std::coroutine_handle<> coroutine) noexcept {
    if (continues_) return coroutine.resume();
    continues_ = true;
    coroutine.resume();
    while (next_)
        std::exchange(next_, nullptr).resume();
    continues_ = false;
}

chain* owner_of(const scope& within) noexcept {
    const scope* at = &within;
    while (at->owner == nullptr && at->enclosing != nullptr)
        at = at->enclosing;
    return at->owner;
}

bool run_queue::count_refusal(const scope& within) noexcept {
    chain* const refused = owner_of(within);
    return refused == nullptr || ++refused->refusals <= refusals_tolerated;
}

bool run_queue::inherit_refusals(chain& made, const scope& maker) noexcept {
    if (const chain* const from = owner_of(maker)) made.refusals = from->refusals + 1;
    return made.refusals <= refusals_tolerated;
}

void run_queue::refuse(suspension& refused, scope& within) noexcept {
    if (tolerate_refusal(within)) push(refused);
}

bool is_only_stop(const std::exception_ptr& exception, stop_reason reason) noexcept {
    if (reason == stop_reason::none) return false;
    try {
        std::rethrow_exception(exception);
    } catch (const std::system_error& thrown) {
        // Also if the limit of the task has passed: another loop that ended gives this error.
        return thrown.code() == std::errc::operation_canceled || thrown.code() == error_of(reason);
    } catch (...) {
        return false;
    }
}

void run_queue::report_unhandled(unhandled_hook hook, std::exception_ptr exception) noexcept {
    if (hook == nullptr) {
        // Rethrown where nothing catches it, so that the terminate handler can name it.
        std::rethrow_exception(std::move(exception));
    }
    hook(std::move(exception));
}

void run_queue::begin_teardown() noexcept {
    dying = true;
    top.stop(stop_reason::teardown);
    chains_.for_each([](chain& each) { each.inner.stop(stop_reason::teardown); });
}

void run_queue::destroy_chains() noexcept {
    destroying = true;
    ready_.clear();
    // Newest first: a child is younger than the frame in which its group was created.
    while (!chains_.empty()) {
        chain& newest = chains_.back();
        newest.unlink();
        // The frame is destroyed, and with it the suspension: destructors must not look at it.
        newest.inner.current = nullptr;
        newest.abandon();
        ready_.clear(); // destructors of locals may have pushed nodes that are destroyed next
    }
    ready_.clear(); // nodes pushed by destructors of locals are gone too
    top.end();
    destroying = false;
}

} // namespace simplenet::v0::detail
