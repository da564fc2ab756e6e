#pragma once
// intrusive_list: a doubly linked list whose links are in the elements. Layer core. Nothing here
// allocates, and an element can leave its list without knowing which one it is.

#include <simplenet/core/detail/contract.hpp>

#include <type_traits>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// The links of an element. `Tag` lets one object be in several lists at once.
///
/// Invariant: `next_` is null if the hook is in no list; otherwise both links are set. A linked
/// hook must not move: its neighbours hold its address.
template <class Tag = void>
class list_hook {
public:
    list_hook() noexcept = default;
    list_hook(const list_hook&) = delete;
    list_hook& operator=(const list_hook&) = delete;
    ~list_hook() { unlink(); }

    [[nodiscard]] bool linked() const noexcept { return next_ != nullptr; }

    /// Leaves its list; does nothing if it is in none.
    void unlink() noexcept {
        if (next_ != nullptr) {
            next_->previous_ = previous_;
            previous_->next_ = next_;
        }
        // Set in either case, so that the compiler knows the value, and a following destructor
        // compiles to nothing.
        next_ = nullptr;
    }

private:
    template <class T, class U>
    friend class intrusive_list;

    list_hook* next_ = nullptr;
    list_hook* previous_; // not initialised: many operations have a timer and few arm it
};

/// Borrows its elements; each derives from `list_hook<Tag>`. Every operation takes constant time.
/// Destroying a list unlinks the remaining elements.
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
        head_.next_ = nullptr; // tells the compiler that the sentinel's destructor does nothing
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
        hook& at = first;
        head_.next_ = at.next_;
        head_.next_->previous_ = &head_;
        at.next_ = nullptr;
        return first;
    }

    /// Moves all elements of `other` to the end of this list. Constant time.
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

    /// Calls `visit(element)` for each element in order. `visit` may unlink the given element, but
    /// no other.
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
        // Stored last, apart from the other link; otherwise compilers pack the two into a vector
        // register.
        at.next_ = &position;
    }

    hook head_; // the sentinel avoids a branch at either end
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
