// A chat room for browsers, on every core: / is its page, /chat its WebSocket.
// Lesson: one task reads while another writes. A guest that floods is slowed down, and one that
// does not read is disconnected: neither costs the others anything.

#include "http_serving.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

// --- the page ------------------------------------------------------------------------------------

constexpr std::string_view page = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Chat</title>
<link rel="stylesheet" href="/chat.css">
<h1>Chat</h1>
<ol id="lines"></ol>
<form id="form"><input id="text" maxlength="1000" autocomplete="off" autofocus><button>Say</button></form>
<script src="/chat.js"></script>
)";

constexpr std::string_view style = R"(
body { font: 1rem sans-serif; max-width: 40rem; margin: 1rem auto; padding: 0 1rem }
ol { list-style: none; padding: 0; height: 70vh; overflow-y: auto; border: 1px solid #ccc }
li { padding: .3rem .6rem; overflow-wrap: anywhere }
li.note { color: #666 }
form { display: flex; gap: .5rem }
input { flex: 1; padding: .4rem }
)";

// textContent, and not innerHTML: what guests say is text, whatever it contains.
constexpr std::string_view script = R"("use strict";
const lines = document.getElementById("lines");
const text = document.getElementById("text");

function show(line) {
  const item = document.createElement("li");
  item.textContent = line;
  if (line.startsWith("* ")) item.className = "note";
  lines.append(item);
  while (lines.children.length > 500) lines.firstChild.remove();
  item.scrollIntoView();
}

const scheme = location.protocol === "https:" ? "wss:" : "ws:";
const chat = new WebSocket(`${scheme}//${location.host}/chat`);
chat.onmessage = event => show(event.data);
chat.onclose = event => show(`* closed: ${event.code} ${event.reason}`);
document.getElementById("form").onsubmit = event => {
  event.preventDefault();
  if (text.value !== "" && chat.readyState === WebSocket.OPEN) chat.send(text.value);
  text.value = "";
};
)";

/// Answers with a constant.
auto always(std::string_view type, std::string_view body) {
    return [type, body](http::request&, http::response& answer) -> task<result<>> {
        // Only what comes from here runs or is shown in the page; others cannot frame it.
        answer.set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
            .set("X-Content-Type-Options", "nosniff");
        co_return co_await answer.send(type, body);
    };
}

// --- the room ------------------------------------------------------------------------------------

constexpr std::size_t longest_message = 4000;
constexpr std::size_t kept_lines = 256; // for guests that read slowly
constexpr auto between_messages = 50ms; // of one guest, on average
constexpr auto ahead = 1s;              // what a guest may say at once

using line = std::shared_ptr<const std::string>; // one copy for all guests

broadcast<line> room{kept_lines};
std::atomic<unsigned> guests = 0;

void tell_all(std::string text) {
    room.send(std::make_shared<const std::string>(std::move(text)));
}

//! [talk]
/// Tells all what a guest says, until it leaves.
task<> talk(http::websocket& guest, const std::string& name) {
    auto paid_until = std::chrono::steady_clock::now();
    while (auto said = co_await guest.read_message()) {
        if (said->kind != http::websocket::message::kind::text) continue;
        tell_all(name + ": " + said->data);
        // While a guest that floods sleeps here, nothing is read from it: TCP slows it down.
        const auto now = std::chrono::steady_clock::now();
        paid_until = std::max(paid_until, now) + between_messages;
        if (paid_until > now + ahead) {
            const auto slept = co_await async_sleep_until(paid_until - ahead);
            if (!slept) co_return;
        }
    }
}
//! [talk]

//! [listen]
/// Sends a guest what is said. False: the guest has left, or has taken no byte for write_idle.
/// True: no more lines come for it, because it has missed one.
task<bool> listen(http::websocket& guest, broadcast<line>::receiver from) {
    while (const auto said = co_await from.receive()) {
        const auto sent = co_await guest.write_message(**said);
        if (!sent) co_return false;
    }
    co_return true;
}

task<> chat(http::websocket& guest) {
    const std::string name = "guest " + std::to_string(++guests);
    auto receiver = room.subscribe();
    tell_all("* " + name + " is here");
    const auto ended = co_await when_any(talk(guest, name), listen(guest, std::move(receiver)));
    tell_all("* " + name + " has left");
    const bool is_slow = ended.index == 1 && *std::get<1>(ended.values);
    if (is_slow) {
        std::ignore = co_await guest.close(1008, "you read too slowly");
    } else {
        std::ignore = co_await guest.close();
    }
}
//! [listen]

} // namespace

int main(int argc, char** argv) {
    const auto given = example::read_server_options(argc, argv, "websocket_chat");
    http::router routes;
    routes.get("/", always("text/html; charset=utf-8", page))
        .get("/chat.css", always("text/css; charset=utf-8", style))
        .get("/chat.js", always("text/javascript; charset=utf-8", script));
    //! [route]
    // Pages of other origins get 403.
    http::websocket_options options;
    options.message_limit = longest_message;
    options.write_idle = 10s;
    routes.websocket("/chat", chat, options);
    //! [route]
    return example::serve_http(given, std::move(routes));
}
