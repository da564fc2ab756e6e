#include <simplenet/runtime/event_loop.hpp>

#include "runtime/assembled_loop.hpp"
#include "runtime/choose_backend.hpp"
#include "runtime/loop_access.hpp"

#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace detail {

result<std::unique_ptr<assembled_loop>> assembled_loop::create(const loop_options& options) {
    auto made = std::make_unique<assembled_loop>(options);
    if (options.dump_signal != 0) {
        if (auto armed = made->dump_signal_.arm(options.dump_signal); !armed) return fail(armed);
    }
    auto driver = make_backend(*made, options);
    if (!driver) return fail(driver);
    made->kind_ = (*driver)->kind();
    made->use(*std::move(driver));
    made->survey_place_.take(*made);
    return made;
}

} // namespace detail

inline namespace runtime {

result<event_loop> event_loop::create(loop_options options) {
    auto made = detail::assembled_loop::create(options);
    if (!made) return fail(made);
    return event_loop{*std::move(made)};
}

event_loop::event_loop(std::unique_ptr<detail::assembled_loop> inner) noexcept
    : inner_{std::move(inner)} {}

event_loop::event_loop(event_loop&& other) noexcept = default;

event_loop& event_loop::operator=(event_loop&& other) noexcept {
    if (this != &other) {
        const event_loop replaced{std::move(*this)};
        inner_ = std::move(other.inner_);
    }
    return *this;
}

event_loop::~event_loop() {
    if (!inner_) return;
    if (inner_->is_inherited()) {
        // Ending it would end the parent's loop: so it is only forgotten, with its contents.
        static_cast<void>(inner_.release());
        return;
    }
    detail::loop_access::end(*this);
}

backend event_loop::selected_backend() const noexcept {
    return inner_->kind();
}

void event_loop::run() {
    inner_->enter(*this);
    inner_->run();
}

bool event_loop::run_for_ns(std::chrono::nanoseconds limit) {
    inner_->enter(*this);
    return inner_->run_for(limit);
}

std::size_t event_loop::poll() {
    inner_->enter(*this);
    return inner_->poll();
}

int event_loop::native_handle() const noexcept {
    return inner_->native_handle();
}

std::optional<event_loop::clock::time_point> event_loop::next_timer() const {
    return inner_->next_timer();
}

event_loop::clock::time_point event_loop::now() const noexcept {
    return inner_->now();
}

void event_loop::stop() noexcept {
    inner_->stop();
}

loop_metrics event_loop::metrics() const {
    return inner_->metrics();
}

void event_loop::dump_tasks(std::ostream& to) {
    std::string text;
    inner_->describe(text);
    to << text;
}

event_loop* event_loop::current() noexcept {
    auto* const running = static_cast<detail::loop*>(detail::run_queue::current());
    return running == nullptr ? nullptr : running->facade;
}

detail::run_queue& event_loop::queue() noexcept {
    return *inner_;
}

detail::run_queue& event_loop::own_queue() noexcept {
    return inner_->spawning_queue();
}

void event_loop::post_item(detail::posted& item) noexcept {
    inner_->offer(item);
}

} // namespace runtime

void detail::loop_access::run_without_work(event_loop& loop) noexcept {
    loop.inner_->runs_without_work = true;
}

void detail::loop_access::refuse_posts(event_loop& loop) noexcept {
    loop.inner_->refuse_offers();
}

detail::posting_queue& detail::loop_access::queue_of(event_loop& loop) noexcept {
    return *loop.inner_;
}

std::vector<std::shared_ptr<detail::surveyed_loop>>
detail::loop_access::places_of(std::span<const event_loop> loops) {
    std::vector<std::shared_ptr<surveyed_loop>> entries;
    for (const event_loop& each : loops)
        entries.push_back(each.inner_->place().entry());
    return entries;
}

void detail::loop_access::end(event_loop& loop) noexcept {
    loop.inner_->facade = &loop;
    loop.inner_->tear_down();
}

} // namespace simplenet::v0
