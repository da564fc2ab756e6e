#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <cxxabi.h>

namespace simplenet::v0 {
namespace detail {

void suspension::describe(std::string& text) {
    const char* const mangled = typeid(*this).name();
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> name{
        abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free};
    std::string shown = status == 0 ? name.get() : mangled;
    // The version of the ABI is in every name, and adds no information here.
    constexpr std::string_view version = "simplenet::v0::";
    for (std::size_t at = 0; (at = shown.find(version, at)) != std::string::npos;)
        shown.replace(at, version.size(), "simplenet::");
    text += shown;
}

void append_sites(const promise_base& innermost, std::vector<std::source_location>& to) {
    for (const promise_base* at = &innermost; at != nullptr; at = parent_of(*at)) {
        if (!at->stands_in_) to.push_back(at->where_);
    }
}

namespace {

void append_site(std::string& text, const char* what, const std::source_location& site) {
    text += what;
    if (site.line() == 0) {
        text += "an unknown place\n";
        return;
    }
    text += site.file_name();
    text += ':';
    text += std::to_string(site.line());
    text += '\n';
}

/// The parts that one suspension, or one set of children, shows.
class parts final : public inspector {
public:
    void inside(scope& inner) override { nested = &inner; }
    void beside(chain& child) override {
        if (!child.over) children.push_back(&child);
    }

    scope* nested = nullptr;
    std::vector<chain*> children;
};

class task_printer {
public:
    task_printer(run_queue& queue, std::string& text) noexcept
        : queue_{queue}
        , text_{text} {}

    void print(chain& each, std::size_t depth) {
        // From the outside in: nested scopes, and the children in each.
        parts found;
        suspension* innermost = nullptr;
        for (scope* within = &each.inner; within != nullptr;) {
            within->children.for_each([&](child_set& set) { set.show(found); });
            found.nested = nullptr;
            if (within->current != nullptr) {
                innermost = within->current;
                innermost->show(found);
            }
            within = found.nested;
        }
        indent(depth);
        print_head(each);
        const bool runs = queue_.here != &queue_.top && owner_of(*queue_.here) == &each;
        if (runs) {
            text_ += "running";
        } else if (innermost == nullptr) {
            text_ += "ready, or waiting for a coroutine of another library";
        } else {
            innermost->describe(text_);
        }
        text_ += '\n';
        if (innermost != nullptr) print_sites(*innermost, depth);
        for (chain* child : found.children)
            print(*child, depth + 1);
    }

private:
    void indent(std::size_t depth) { text_.append(4 * depth, ' '); }

    void print_head(const chain& each) {
        if (each.number != 0) {
            std::array<char, 64> age{};
            const auto ns = std::max<std::int64_t>(queue_.clock_ns - each.made_ns, 0);
            std::snprintf(age.data(), age.size(), ", %.3f s", static_cast<double>(ns) * 1e-9);
            text_ += '#';
            text_ += std::to_string(each.number);
            if (each.name) (text_ += ' ') += each.name.get();
            text_ += age.data();
        } else {
            text_ += '-';
            if (each.name) (text_ += ' ') += each.name.get();
        }
        text_ += ": ";
    }

    void print_sites(const suspension& waits, std::size_t depth) {
        if (!waits.caller()) return;
        // One of our coroutines awaits the suspension of a scope's own chain, see scope_of().
        const auto caller =
            std::coroutine_handle<promise_base>::from_address(waits.caller().address());
        sites_.clear();
        append_sites(caller.promise(), sites_);
        for (const std::source_location& site : sites_) {
            indent(depth + 1);
            append_site(text_, "at ", site);
        }
    }

    run_queue& queue_;
    std::string& text_;
    std::vector<std::source_location> sites_;
};

} // namespace

void run_queue::describe_tasks(std::string& text) {
    task_printer printer{*this, text};
    chains_.for_each([&](chain& each) {
        // The others are printed below their parents.
        if (!each.over && each.inner.enclosing == &top) printer.print(each, 0);
    });
}

// --- contract violations -------------------------------------------------------------------------

namespace {

/// The coroutine whose await broke the contract.
struct blamed {
    std::coroutine_handle<> caller;
    const scope* within = nullptr;
    bool suspended = false; // its location is recorded
};
constinit thread_local blamed to_blame{};

/// The promise of the coroutine that awaits in `within`; null if it may be a foreign one.
const promise_base* promise_of(std::coroutine_handle<> caller, const scope& within) {
    if (!caller || &within == &within.queue->top) return nullptr;
    return &std::coroutine_handle<promise_base>::from_address(caller.address()).promise();
}

void append_task(std::string& text, const chain& task) {
    text += "    in task #";
    text += std::to_string(task.number);
    if (task.name) (text += ' ') += task.name.get();
    text += '\n';
}

/// For the running coroutine only the last await of its task's first coroutine is known.
void append_running(std::string& text, const scope& within) {
    const chain* const task = owner_of(within);
    if (task == nullptr) return;
    append_task(text, *task);
    const promise_base* const first = task->first();
    if (first != nullptr && first->where_.line() != 0) {
        append_site(text, "    last seen at ", first->where_);
    }
}

/// The await locations of a waiting coroutine, of its parents, and of the chains that contain them.
void append_awaiting(std::string& text, std::coroutine_handle<> caller, const scope* within,
                     bool suspended) {
    std::string sites;
    const char* what = suspended ? "    at " : "    after ";
    const chain* task = nullptr;
    while (const promise_base* const innermost = promise_of(caller, *within)) {
        std::vector<std::source_location> found;
        append_sites(*innermost, found);
        for (const std::source_location& site : found)
            append_site(sites, std::exchange(what, "    at "), site);
        task = owner_of(*within);
        // An arm of a combinator has no number of its own.
        if (task == nullptr || task->number != 0) break;
        within = task->inner.enclosing;
        if (within->current == nullptr) break;
        caller = within->current->caller();
    }
    if (task != nullptr) append_task(text, *task);
    text += sites;
}

/// A coroutine that belongs to no task, so that the queue can continue with it.
struct complaint {
    struct promise_type {
        complaint get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        static std::suspend_always initial_suspend() noexcept { return {}; }
        static std::suspend_always final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        static void unhandled_exception() noexcept { std::abort(); }
    };
    std::coroutine_handle<promise_type> frame;
};
complaint complain(const char* message, std::source_location where) {
    contract_violation(where.file_name(), static_cast<int>(where.line()), nullptr, message);
    co_return;
}

} // namespace

bool misused(std::coroutine_handle<> caller, scope& within, const char* message,
             std::source_location where) noexcept {
    to_blame = {.caller = caller, .within = &within, .suspended = false};
    within.queue->continue_with(complain(message, where).frame);
    to_blame.suspended = true; // it will be when the queue continues
    return true;
}

void tell_task() noexcept {
    const run_queue* const queue = run_queue::current();
    if (queue == nullptr) return;
    try {
        std::string text;
        const scope& here = *queue->here;
        if (to_blame.within != nullptr) {
            append_awaiting(text, to_blame.caller, to_blame.within, to_blame.suspended);
        } else if (here.current != nullptr) {
            append_awaiting(text, here.current->caller(), &here, true);
        } else {
            append_running(text, here);
        }
        std::fputs(text.c_str(), stderr);
    } catch (...) {
        std::fputs("    (no memory to say in which task)\n", stderr);
    }
}

} // namespace detail

inline namespace runtime {

void this_task::set_name(std::string_view name) {
    detail::chain* const task = detail::owner_of(*detail::run_queue::require_current().here);
    SIMPLENET_EXPECTS(task != nullptr, "set_name() outside of a task");
    task->name.reset();
    if (name.empty()) return;
    task->name = std::make_unique<char[]>(name.size() + 1);
    // For terminals and logs, on one line: a name may come from a peer.
    std::replace_copy_if(
        name.begin(), name.end(), task->name.get(),
        [](char each) { return static_cast<unsigned char>(each) < ' ' || each == '\x7f'; }, '?');
}

} // namespace runtime
} // namespace simplenet::v0
