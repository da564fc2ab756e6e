#pragma once
// intrusive_list: a doubly linked list whose links live in the elements. Layer core.
// Nothing here allocates, and an element can leave whatever list it is in without knowing it.

#include <simplenet/core/detail/contract.hpp>

#include <type_traits>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The links of an element. `Tag` lets one object be in several lists at once.
///
/// Invariant: `next_` is null in no list; otherwise both links are set. A linked hook must not
/// move: its neighbours hold its address.
template <class Tag = void>
class list_hook {
public:
    list_hook() noexcept = default;
    list_hook(const list_hook&) = delete;
    list_hook& operator=(const list_hook&) = delete;
    ~list_hook() { unlink(); }

    [[nodiscard]] bool linked() const noexcept { return next_ != nullptr; }

    /// Leaves its list; does nothing when in none.
    void unlink() noexcept {
        if (next_ != nullptr) {
            next_->previous_ = previous_;
            previous_->next_ = next_;
        }
        // In either case: so the compiler knows it, and a destructor that follows does nothing.
        next_ = nullptr;
    }

private:
    template <class T, class U>
    friend class intrusive_list;

    list_hook* next_ = nullptr;
    list_hook* previous_; // not initialised: timers are made for many an operation, and rarely set
};

/// Borrows its elements; each derives from `list_hook<Tag>`. Every operation is constant time.
/// Destroying a list unlinks what is still in it.
template <class T, class Tag = void>
class intrusive_list {
    using hook = list_hook<Tag>;

public:
    intrusive_list() noexcept { head_.next_ = head_.previous_ = &head_; }
    intrusive_list(const intrusive_list&) = delete;
    intrusive_list& operator=(const intrusive_list&) = delete;
    ~intrusive_list() {
        while (!empty())
            pop_front();
        head_.next_ = nullptr; // so that the compiler knows: the sentinel's destructor does nothing
    }

    [[nodiscard]] bool empty() const noexcept { return head_.next_ == &head_; }

    /// @pre `element` is in no list of this tag.
    void push_back(T& element) noexcept { insert_before(head_, element); }
    /// @pre `element` is in no list of this tag.
    void push_front(T& element) noexcept { insert_before(*head_.next_, element); }

    /// @pre not empty.
    [[nodiscard]] T& front() noexcept {
        SIMPLENET_DEBUG_EXPECTS(!empty(), "an empty list has no first element");
        return owner(*head_.next_);
    }
    /// @pre not empty.
    [[nodiscard]] T& back() noexcept {
        SIMPLENET_DEBUG_EXPECTS(!empty(), "an empty list has no last element");
        return owner(*head_.previous_);
    }

    /// @pre not empty.
    T& pop_front() noexcept {
        T& first = front();
        static_cast<hook&>(first).unlink();
        return first;
    }

    /// Moves everything of `other` behind what is here. Constant time.
    void splice_back(intrusive_list& other) noexcept {
        if (other.empty()) return;
        hook* const first = other.head_.next_;
        hook* const last = other.head_.previous_;
        other.head_.next_ = other.head_.previous_ = &other.head_;
        first->previous_ = head_.previous_;
        head_.previous_->next_ = first;
        last->next_ = &head_;
        head_.previous_ = last;
    }

    /// Calls `visit(element)` for each, first to last. `visit` may unlink the element it is
    /// given, and no other.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (hook* at = head_.next_; at != &head_;) {
            hook* const next = at->next_;
            visit(owner(*at));
            at = next;
        }
    }

private:
    static T& owner(hook& at) noexcept { return static_cast<T&>(at); }

    static void insert_before(hook& position, T& element) noexcept {
        hook& at = element;
        SIMPLENET_DEBUG_EXPECTS(!at.linked(), "an element can be in one list at a time");
        hook& before = *position.previous_;
        at.previous_ = &before;
        before.next_ = &at;
        position.previous_ = &at;
        // Last, and not next to the other link: compilers would pack the two into a vector.
        at.next_ = &position;
    }

    hook head_; // sentinel: no branch at either end
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
