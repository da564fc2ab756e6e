// A clock for browsers: /events streams the time as server-sent events, / is a page that shows it.
// Lesson: an answer may last as long as its client; server_stop() ends it well.

#include "http_serving.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

using namespace simplenet;

namespace {

constexpr std::string_view page = R"(<!doctype html>
<meta charset="utf-8">
<title>A clock</title>
<h1 id="time">?</h1>
<script>
const events = new EventSource("/events");
events.onmessage = event => document.getElementById("time").textContent = event.data;
</script>
)";

task<result<>> show_page(http::request&, http::response& answer) {
    co_return co_await answer.send("text/html; charset=utf-8", page);
}

std::string time_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

//! [events]
/// Each client has its own ticks. A browser connects again when the stream has ended.
task<result<>> tell_time(http::response& answer, std::chrono::milliseconds period) {
    answer.set("Content-Type", "text/event-stream").set("Cache-Control", "no-store");
    interval ticks{period};
    for (std::uint64_t number = 1;; ++number) {
        const std::string event =
            "id: " + std::to_string(number) + "\ndata: " + time_now() + "\n\n";
        // Waits for a client that does not read; limits::send_idle and minimum_rate end that.
        const auto sent = co_await async_write_all(answer, event);
        if (!sent) co_return fail(sent); // the client is gone
        const auto next = co_await when_any(ticks.next(), server_stop());
        if (next.index == 1) co_return result<>{}; // the answer ends complete
    }
}
//! [events]

} // namespace

int main(int argc, char** argv) {
    const std::string usage =
        std::string{"http_stream [--period-ms N]"}.append(example::server_usage);
    example::arguments given{argc, argv, usage};
    const auto server = example::take_server_options(given);
    const std::chrono::milliseconds period{given.number<std::uint32_t>(
        "period", given.option("--period-ms").value_or("1000"), 1, 3'600'000)};
    given.finish();

    http::router routes;
    routes.get("/", show_page);
    routes.get("/events", [period](http::request&, http::response& answer) {
        return tell_time(answer, period);
    });
    return example::serve_http(server, std::move(routes));
}
