#pragma once
// when_all, when_any and gather: run several awaitables at once and always join them all. Layer
// coro.

#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/spawn.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
namespace detail {

/// A value for every result type: void becomes std::monostate.
template <class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class Awaitable>
task<await_result<Awaitable>> run_as_task(Awaitable awaitable) {
    co_return co_await std::move(awaitable);
}

/// A task is taken unchanged; any other awaitable gets a coroutine around it.
template <class Awaitable>
auto as_task(Awaitable&& awaitable) {
    // NOLINTBEGIN(bugprone-move-forwarding-reference): moved from lvalues too
    if constexpr (is_task<std::remove_cvref_t<Awaitable>>) {
        return std::move(awaitable);
    } else {
        return run_as_task<std::remove_cvref_t<Awaitable>>(std::move(awaitable));
    }
    // NOLINTEND(bugprone-move-forwarding-reference)
}

class arms;

/// One of the chains that a combinator runs at the same time. Part of the awaiter.
class arm_base : public chain {
public:
    void finished() noexcept final;
    // The frame of the awaiting coroutine is destroyed, and this one with it.
    void abandon() noexcept final {}

protected:
    friend class arms;
    arm_base() noexcept = default;
    arm_base(arm_base&&) noexcept = default;
    ~arm_base() = default;

    arms* group_ = nullptr;
    std::size_t index_ = 0;
};

/// Waits until every arm has ended. The first end may stop the others.
class arms : public suspension {
public:
    void on_stop(stop_reason reason) noexcept final {
        for_each([reason](arm_base& each) { each.inner.stop(reason); });
    }
    void describe(std::string& text) final {
        text += std::to_string(running_);
        text += " at once";
    }
    void show(inspector& to) final {
        for_each([&](arm_base& each) { to.beside(each); });
    }

protected:
    arms() noexcept = default;
    arms(arms&&) noexcept {}
    ~arms() = default;

    /// Called once for each arm that ends, before its frame is touched. Returning true stops the
    /// others.
    virtual bool ended(std::size_t index) noexcept = 0;
    virtual void visit(void (*function)(void*, arm_base&), void* context) noexcept = 0;

    template <class Function>
    void for_each(Function&& function) noexcept {
        visit([](void* context, arm_base& each) { (*static_cast<Function*>(context))(each); },
              &function);
    }

    void start_all(std::coroutine_handle<> caller, scope& within, std::size_t count) noexcept {
        suspend(caller, within);
        running_ = count;
        run_queue& queue = *within.queue;
        if (!queue.tolerate_refusal(within)) return;
        std::size_t index = 0;
        for_each([&](arm_base& each) {
            each.group_ = this;
            each.index_ = index++;
            each.inner.begin(within);
            if (queue.may_start(each, within)) queue.push(each);
        });
    }

private:
    friend arm_base;
    std::size_t running_ = 0;
};

inline void arm_base::finished() noexcept {
    arms& group = *group_;
    over = true;
    inner.end();
    if (group.ended(index_)) {
        group.for_each([this](arm_base& each) {
            if (&each != this) each.inner.stop(stop_reason::canceled);
        });
    }
    if (--group.running_ == 0) group.within_->queue->push(group);
}

template <class T>
class arm final : public arm_base {
public:
    explicit arm(task<T> work) noexcept
        : frame_{work} {}
    arm(arm&&) noexcept = default;
    ~arm() = default;

    void run() noexcept override { frame_.start(*this); }
    [[nodiscard]] const promise_base* first() const noexcept override { return frame_.first(); }

    [[nodiscard]] task_promise<T>& promise() const noexcept { return frame_.promise(); }

    /// @pre ended. Rethrows the exception of the task.
    [[nodiscard]] value_of<T> take() {
        if constexpr (std::is_void_v<T>) {
            promise().take();
            return {};
        } else {
            return promise().take();
        }
    }

private:
    chain_frame<T> frame_;
};

/// Whether the arm ended with a value that means success.
template <class T>
[[nodiscard]] bool succeeded(const arm<T>& ended) noexcept {
    if (ended.promise().exception()) return false;
    if constexpr (is_expected<T>) return ended.promise().peek().has_value();
    return true;
}

template <class T>
void rethrow_exception_of(const arm<T>& ended) {
    if (auto exception = ended.promise().exception()) std::rethrow_exception(std::move(exception));
}

template <class... Ts>
class tuple_of_arms : public arms, public awaited_from_outside<tuple_of_arms<Ts...>> {
public:
    template <class... Awaitables>
    explicit tuple_of_arms(std::in_place_t, Awaitables&&... each)
        : arms_{arm<Ts>{as_task(std::forward<Awaitables>(each))}...} {}
    tuple_of_arms(tuple_of_arms&&) noexcept = default;
    ~tuple_of_arms() = default;

    static bool await_ready() noexcept { return sizeof...(Ts) == 0; }
    using awaited_from_outside<tuple_of_arms>::await_suspend;
    template <own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        start_all(caller, scope_of(caller, at), sizeof...(Ts));
    }

protected:
    [[nodiscard]] bool arm_succeeded(std::size_t index) const noexcept {
        bool answer = false;
        std::size_t at = 0;
        std::apply(
            [&](const auto&... each) {
                ((at++ == index ? void(answer = succeeded(each)) : void()), ...);
            },
            arms_);
        return answer;
    }
    void rethrow_first() const {
        std::apply([](const auto&... each) { (rethrow_exception_of(each), ...); }, arms_);
    }

    std::tuple<arm<Ts>...> arms_;

private:
    void visit(void (*function)(void*, arm_base&), void* context) noexcept final {
        std::apply([&](auto&... each) { (function(context, each), ...); }, arms_);
    }
};

template <class T>
class vector_of_arms : public arms, public awaited_from_outside<vector_of_arms<T>> {
public:
    explicit vector_of_arms(std::vector<task<T>> tasks) {
        arms_.reserve(tasks.size());
        for (task<T>& each : tasks)
            arms_.emplace_back(std::move(each));
    }
    vector_of_arms(vector_of_arms&&) noexcept = default;
    ~vector_of_arms() = default;

    [[nodiscard]] bool await_ready() const noexcept { return arms_.empty(); }
    using awaited_from_outside<vector_of_arms>::await_suspend;
    template <own_promise Promise>
    void await_suspend(std::coroutine_handle<Promise> caller,
                       await_site at = await_site::current()) noexcept {
        start_all(caller, scope_of(caller, at), arms_.size());
    }

protected:
    void rethrow_first() const {
        for (const arm<T>& each : arms_)
            rethrow_exception_of(each);
    }

    std::vector<arm<T>> arms_;

private:
    void visit(void (*function)(void*, arm_base&), void* context) noexcept final {
        for (arm<T>& each : arms_)
            function(context, each);
    }
};

/// Awaitable of when_all(); the contract is documented there.
template <class... Ts>
class [[nodiscard]] when_all_awaiter final : public tuple_of_arms<Ts...> {
public:
    using tuple_of_arms<Ts...>::tuple_of_arms;

    std::tuple<value_of<Ts>...> await_resume() {
        this->rethrow_first();
        return std::apply([](auto&... each) { return std::tuple<value_of<Ts>...>{each.take()...}; },
                          this->arms_);
    }

private:
    bool ended(std::size_t) noexcept override { return false; }
};

template <class T>
class [[nodiscard]] when_all_vector_awaiter final : public vector_of_arms<T> {
public:
    using vector_of_arms<T>::vector_of_arms;

    auto await_resume() {
        this->rethrow_first();
        if constexpr (!std::is_void_v<T>) {
            std::vector<T> values;
            values.reserve(this->arms_.size());
            for (arm<T>& each : this->arms_)
                values.push_back(each.take());
            return values;
        }
    }

private:
    bool ended(std::size_t) noexcept override { return false; }
};

/// The first of the arms to end.
class first_end {
public:
    [[nodiscard]] bool note(std::size_t index) noexcept {
        if (index_ != none) return false;
        index_ = index;
        return true;
    }
    [[nodiscard]] std::size_t index() const noexcept { return index_; }

    static constexpr std::size_t none = static_cast<std::size_t>(-1);

private:
    std::size_t index_ = none;
};

} // namespace detail

inline namespace runtime {

/// The result of when_any(): which one was first, and the values of all that have one.
template <class... Ts>
struct when_any_result {
    std::size_t index;                                         // the first to end
    std::tuple<std::optional<detail::value_of<Ts>>...> values; // the first's, and late successes
};

/// The same for a vector of tasks.
template <class T>
struct when_any_vector_result {
    std::size_t index;
    std::vector<std::optional<detail::value_of<T>>> values;
};

} // namespace runtime

namespace detail {

/// The first arm's value, whatever it is; of the others only late successes.
template <class T>
[[nodiscard]] std::optional<value_of<T>> value_if(arm<T>& ended, bool first) {
    if (!first && !succeeded(ended)) return std::nullopt;
    return std::optional<value_of<T>>{ended.take()};
}

/// Awaitable of when_any(); the contract is documented there.
template <class... Ts>
class [[nodiscard]] when_any_awaiter final : public tuple_of_arms<Ts...> {
public:
    using tuple_of_arms<Ts...>::tuple_of_arms;

    when_any_result<Ts...> await_resume() {
        this->rethrow_first();
        return std::apply(
            [this](auto&... each) {
                std::size_t at = 0;
                return when_any_result<Ts...>{first_.index(),
                                              {value_if(each, at++ == first_.index())...}};
            },
            this->arms_);
    }

private:
    bool ended(std::size_t index) noexcept override { return first_.note(index); }

    first_end first_;
};

template <class T>
class [[nodiscard]] when_any_vector_awaiter final : public vector_of_arms<T> {
public:
    using vector_of_arms<T>::vector_of_arms;

    when_any_vector_result<T> await_resume() {
        this->rethrow_first();
        when_any_vector_result<T> answer{first_.index(), {}};
        answer.values.reserve(this->arms_.size());
        for (std::size_t at = 0; at < this->arms_.size(); ++at) {
            answer.values.push_back(value_if(this->arms_[at], at == first_.index()));
        }
        return answer;
    }

private:
    bool ended(std::size_t index) noexcept override { return first_.note(index); }

    first_end first_;
};

/// Awaitable of gather(); the contract is documented there.
template <class... Ts>
class [[nodiscard]] gather_awaiter final : public tuple_of_arms<Ts...> {
public:
    using tuple_of_arms<Ts...>::tuple_of_arms;
    using values = std::tuple<value_of<typename Ts::value_type>...>;

    result<values> await_resume() {
        if (failed_.index() == first_end::none) {
            return std::apply(
                [](auto&... each) { return values{value_of_success(each.take())...}; },
                this->arms_);
        }
        std::error_code code;
        std::size_t at = 0;
        std::apply(
            [&](auto&... each) {
                ((at++ == failed_.index() ? void(code = failure_of(each)) : void()), ...);
            },
            this->arms_);
        this->rethrow_first(); // of an arm that was stopped after the first failure
        return fail(code);
    }

private:
    bool ended(std::size_t index) noexcept override {
        return !this->arm_succeeded(index) && failed_.note(index);
    }

    template <class Expected>
    static auto value_of_success(Expected outcome) {
        if constexpr (std::is_void_v<typename Expected::value_type>) {
            return std::monostate{};
        } else {
            return *std::move(outcome);
        }
    }
    template <class T>
    static std::error_code failure_of(arm<T>& failed) {
        return failed.take().error();
    }

    first_end failed_;
};

} // namespace detail

inline namespace runtime {

/// Runs every awaitable to its end, all at the same time, and returns all their values.
///
/// None is stopped because of another: a result that is an error is a value like any other. If some
/// threw, the exception of the first in argument order is rethrown after all have ended.
///
/// @return A tuple with a std::monostate for each void.
/// @par Cancellation
/// A stop reaches all of them; all are joined.
/// @par Cost
/// A recycled coroutine frame for each argument that is not a task; no other allocation.
template <detail::awaitable... Awaitables>
[[nodiscard]] auto when_all(Awaitables... each) {
    return detail::when_all_awaiter<detail::await_result<Awaitables>...>{std::in_place,
                                                                         std::move(each)...};
}

/// The same for a vector of tasks. Returns the values in order, or nothing for `task<>`.
template <class T>
[[nodiscard]] auto when_all(std::vector<task<T>> tasks) {
    static_assert(!std::is_reference_v<T>, "a vector has no place for references: return pointers");
    return detail::when_all_vector_awaiter<T>{std::move(tasks)};
}

/// Waits for the first to end, stops the others, and joins them.
///
/// If a loser succeeded nevertheless, its value is in `values`, so nothing is lost; a result that
/// is an error counts as a value only for the first. If any threw, the exception of the first in
/// argument order is rethrown after all have ended.
///
/// @par Cancellation
/// A stop reaches all of them; all are joined.
template <detail::awaitable... Awaitables>
    requires(sizeof...(Awaitables) > 0)
[[nodiscard]] auto when_any(Awaitables... each) {
    static_assert((!std::is_reference_v<detail::await_result<Awaitables>> && ...),
                  "when_any() has no place for a reference: return a pointer");
    return detail::when_any_awaiter<detail::await_result<Awaitables>...>{std::in_place,
                                                                         std::move(each)...};
}

/// The same for a vector of tasks.
///
/// @pre `tasks` is not empty.
template <class T>
[[nodiscard]] auto when_any(std::vector<task<T>> tasks) {
    static_assert(!std::is_reference_v<T>,
                  "when_any() has no place for a reference: return a pointer");
    SIMPLENET_EXPECTS(!tasks.empty(), "when_any() of nothing would never end");
    return detail::when_any_vector_awaiter<T>{std::move(tasks)};
}

/// Runs every awaitable to its end and returns all their values. The first error or exception stops
/// the others, and is returned or rethrown when they are joined. If a stopped one throws, its
/// exception is rethrown in place of the first error: no exception is swallowed.
///
/// @return A tuple with a std::monostate for each `result<>`.
/// @par Cancellation
/// A stop reaches all of them; all are joined.
template <detail::awaitable... Awaitables>
    requires(detail::failable<detail::await_result<Awaitables>> && ...)
[[nodiscard]] auto gather(Awaitables... each) {
    return detail::gather_awaiter<detail::await_result<Awaitables>...>{std::in_place,
                                                                       std::move(each)...};
}

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
