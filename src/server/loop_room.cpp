#include "server/loop_room.hpp"

#include "sys/calls.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <utility>

namespace simplenet::v0::detail {

namespace {

constinit thread_local loop_room* room_here = nullptr;

/// A connection that waits from one tick to the next has waited long enough to be closed.
constexpr std::chrono::milliseconds tick_time{500};
/// In one turn of the loop.
constexpr std::size_t most_looked_at = 256;
/// What is wanted when there is no descriptor, and at most.
constexpr std::size_t wanted_at_once = 32;
constexpr std::size_t most_wanted = 256;

} // namespace

// --- waiting_list --------------------------------------------------------------------------------

void waiting_list::age() noexcept {
    forget_spared(); // their clients may have taken everything since
    older_->unlink();
    std::swap(older_, newer_);
    waiters_.push_back(*newer_);
}

void waiting_list::forget() noexcept {
    forget_spared();
    older_->unlink();
    newer_->unlink();
    lacking_ = found_to_spare_ = 0;
}

void waiting_list::forget_spared() noexcept {
    spared_.splice_back(waiters_);
    waiters_.splice_back(spared_);
}

std::size_t waiting_list::end_some(std::size_t count, std::size_t& looks) noexcept {
    std::size_t ended = 0;
    const auto has_old = [&] { return older_->linked() && &waiters_.front() != older_; };
    for (; ended != count && looks != 0 && has_old(); --looks) {
        stop_waiter& oldest = waiters_.pop_front();
        if (oldest.may_lose()) {
            spared_.push_back(oldest);
            ++found_to_spare_;
        } else {
            ended += end(oldest);
        }
    }
    return ended;
}

std::size_t waiting_list::end_spared(std::size_t count, std::size_t& looks) noexcept {
    std::size_t ended = 0;
    for (; ended != count && looks != 0 && !spared_.empty(); --looks)
        ended += end(spared_.pop_front());
    return ended;
}

bool waiting_list::end(stop_waiter& waiter) noexcept {
    const bool has_ended = waiter.make_room();
    if (!has_ended) waiters_.push_back(waiter); // the next search does not find it first
    return has_ended;
}

// --- loop_room -----------------------------------------------------------------------------------

std::shared_ptr<loop_room> loop_room::here() {
    return room_here != nullptr ? room_here->shared_from_this() : std::make_shared<loop_room>();
}

loop_room* loop_room::find() noexcept {
    return room_here;
}

loop_room::loop_room() noexcept {
    room_here = this;
}

loop_room::~loop_room() {
    shortage_observer::unlink();
    room_here = nullptr;
}

void loop_room::add(waiting_list& list, io_queue& queue) noexcept {
    lists_.push_back(list);
    if (queue_ != nullptr) return;
    queue_ = &queue;
    queue.tell_of_shortage(*this);
}

void loop_room::lacks_place(waiting_list& list) noexcept {
    list.lacking_ = 1;
    begin();
}

void loop_room::look_at_descriptors(int newest, bool is_here) noexcept {
    // The kernel gives the lowest free number (open(2)), so at least as many are in use.
    if (newest >= scarce_from_) {
        read_limit();
        if (newest < scarce_from_) return;
        in_use_ = newest + 1;
        lack_descriptors(2); // so that there are fewer afterwards
    } else if (in_use_ != 0) {
        // Its number may be that of one that has made room, which tells nothing. Nobody tells this
        // loop of those that end elsewhere, so they are counted.
        if (is_here) {
            ++in_use_;
        } else {
            count_descriptors();
        }
        if (in_use_ > scarce_from_) lack_descriptors(1);
    }
}

int loop_room::read_limit() noexcept {
    constexpr int most_left = 1024; // for files and other connections
    const int limit = sys::descriptor_limit();
    // Each listener looks when it has accepted, so each takes one more.
    std::size_t listeners = 0;
    lists_.for_each([&](waiting_list& each) { listeners += each.core_.size(); });
    const int for_listeners = static_cast<int>(std::min<std::size_t>(listeners, most_left));
    scarce_from_ = limit - std::min(limit / 16, most_left) - std::min(limit / 4, for_listeners);
    return limit;
}

void loop_room::count_descriptors() noexcept {
    const int limit = read_limit();
    const int count = std::min(sys::descriptors_in_use(), limit);
    in_use_ = count >= scarce_from_ ? count : 0;
}

bool loop_room::is_scarce() noexcept {
    count_descriptors();
    return in_use_ != 0;
}

std::size_t loop_room::give_up_spares() noexcept {
    std::size_t given = 0;
    holders_.for_each([&given](spare_holder& each) { given += each.give_up_descriptors(); });
    return given;
}

void loop_room::help(waiting_list& list) noexcept {
    if (is_scarce()) give_up_spares();
    lacks_place(list);
}

bool loop_room::is_crowded() noexcept {
    std::size_t open = 0;
    lists_.for_each([&](waiting_list& each) {
        for (std::size_t loop = 0; loop != each.core_.size(); ++loop)
            open += each.core_.slot(loop).open.load(std::memory_order_relaxed);
    });
    return 2 * open >= static_cast<std::size_t>(scarce_from_);
}

void loop_room::lacks_descriptors() noexcept {
    // Several may find none in the same moment: together they want no more than one would.
    const std::size_t wanted = std::min(lacking_ + ending_, wanted_at_once);
    if (queue_ != nullptr) lack_descriptors(wanted_at_once - wanted);
}

void loop_room::lack_descriptors(std::size_t count) noexcept {
    lacking_ = std::min(lacking_ + count, most_wanted);
    was_lacking_ = true;
    begin();
}

void loop_room::begin() noexcept {
    was_asked_ = true;
    if (!ticks_.armed()) {
        lists_.for_each([](waiting_list& each) { each.age(); });
        queue_->timers.insert_after(ticks_, tick_time);
    }
    // Not at once: this may be told while the loop polls, where nothing may be stopped.
    if (!soon_.armed()) queue_->timers.insert_after(soon_, {});
}

void loop_room::make_room() noexcept {
    std::size_t looks = most_looked_at;
    if (lacking_ != 0) {
        const std::size_t given = give_up_spares();
        if (given != 0) {
            count_descriptors();
            lacking_ = in_use_ == 0 ? 0 : lacking_ - std::min(lacking_, given);
        }
    }
    const auto end_with = [&](auto end_of) {
        std::size_t ended = 0;
        lists_.for_each([&](waiting_list& each) {
            const std::size_t places = (each.*end_of)(each.lacking_, looks);
            const std::size_t descriptors = (each.*end_of)(lacking_, looks);
            each.lacking_ -= places;
            lacking_ -= descriptors;
            ended += places + descriptors;
        });
        ending_ += ended;
        return ended;
    };
    ended_ += end_with(&waiting_list::end_some);
    // Not list by list: the descriptors are of all sites.
    if (is_urgent_ && end_with(&waiting_list::end_spared) != 0) has_ended_spared_ = true;
    if (lacking_ == 0) relieved_.set();
    if (looks == 0 && !soon_.armed()) queue_->timers.insert_after(soon_, {});
}

bool loop_room::lacks_something() noexcept {
    bool lacks = lacking_ != 0;
    lists_.for_each([&](waiting_list& each) { lacks |= each.lacking_ != 0; });
    return lacks;
}

void loop_room::tick() noexcept {
    // What this loop waits for may have ended on another one. A lack of something else is not over.
    const bool was_scarce = in_use_ != 0;
    const bool is_scarce_now = is_scarce();
    if (was_scarce && !is_scarce_now) satisfy();
    const bool is_held = is_scarce_now && held_ != 0 && lacking_ != 0 && is_crowded();
    bool goes_on = std::exchange(was_asked_, false) || is_held;
    lists_.for_each([&](waiting_list& each) { goes_on |= each.awaiting_ != 0; });
    ending_ = 0; // those that are still there have got a request after all
    if (!goes_on) {
        lists_.for_each([](waiting_list& each) { each.forget(); });
        is_told_ = holds_up_ = is_urgent_ = has_ended_spared_ = false;
        ended_ = 0;
        return satisfy();
    }
    queue_->timers.insert_after(ticks_, tick_time);
    const bool is_needed = std::exchange(has_ended_spared_, false) || lacks_something();
    lists_.for_each([](waiting_list& each) {
        each.age();
        if (each.awaiting_ != 0) each.lacking_ = 1; // one that was to end may have got a request
    });
    is_urgent_ = false;
    make_room();
    std::size_t to_spare = 0;
    lists_.for_each(
        [&](waiting_list& each) { to_spare += std::exchange(each.found_to_spare_, 0); });
    // The others are soon old enough, so they are waited for, unless they are fewer.
    const bool are_fewer = std::exchange(ended_, 0) < to_spare;
    is_urgent_ = are_fewer && (is_needed || lacks_something());
    if (is_urgent_) make_room();
    lists_.for_each([this](waiting_list& each) { // other loops may have somebody
        if (lacking_ != 0 || (each.awaiting_ != 0 && each.lacking_ != 0)) {
            each.core_.ask_others_for_room(each.site_);
        }
        if (each.awaiting_ == 0) each.lacking_ = 0; // it was refused, or another loop asked
    });
    // After one tick, every connection may still be too young to be spared.
    const bool holds_up = held_ != 0 && lacking_ != 0;
    if (std::exchange(holds_up_, holds_up) && holds_up && !std::exchange(is_told_, true)) tell();
    // Others that ask do not keep up a shortage of this loop.
    if (!std::exchange(was_lacking_, false) && !is_held) satisfy();
}

void loop_room::satisfy() noexcept {
    lacking_ = 0;
    relieved_.set();
}

void loop_room::tell() noexcept {
    if (!queue_->on_event) return;
    queue_->on_event.tell(
        {.kind = loop_event_kind::accept_paused,
         .text = {},
         .error = std::make_error_code(std::errc::too_many_files_open),
         .duration = tick_time},
        "accepting pauses: few descriptors are left, and no connection can be spared");
}

} // namespace simplenet::v0::detail
