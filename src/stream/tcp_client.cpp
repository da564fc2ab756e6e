#include <simplenet/stream/tcp_client.hpp>

#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/stream/detail/backoff_steps.hpp>
#include <simplenet/time/sleep.hpp>

namespace simplenet::v0 {
inline namespace runtime {

task<result<>> tcp_client::stay_connected(start_session start, void* session) {
    const detail::scope& within = co_await detail::own_scope{};
    const event_loop& loop = *event_loop::current();
    detail::backoff_steps pauses{options_.backoff, seed_ ? *seed_ : detail::random_seed()};
    client_event event;
    for (;;) {
        ++event.attempt;
        bool was_stable = false;
        {
            result<tcp_stream> stream = co_await async_connect(host_, port_, options_.connect);
            if (within.stopped()) co_return fail(detail::error_of(within.reason));
            if (!stream) {
                event.kind = client_event::connect_failed;
                event.error = stream.error();
            } else {
                const auto connected = loop.now();
                event.kind = client_event::connected;
                event.error.clear();
                event.next_delay = std::chrono::nanoseconds{0};
                tell(event);
                const result<> ended = co_await start(session, *stream);
                if (ended) co_return result<>{};
                if (within.stopped()) co_return fail(detail::error_of(within.reason));
                event.kind = client_event::disconnected;
                event.error = ended.error();
                was_stable = loop.now() - connected >= options_.stable_after;
            }
        } // closes the connection before the event and the pause

        if (was_stable) pauses.reset();
        event.next_delay = pauses.next();
        tell(event);
        if (was_stable) event.attempt = 0;
        const result<> slept = co_await async_sleep(event.next_delay);
        if (!slept) co_return slept;
    }
}

} // namespace runtime
} // namespace simplenet::v0
