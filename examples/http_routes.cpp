// A small JSON service: notes that clients list, add, read, change and remove.
// Lesson: handlers run on several loops, so what they share has a lock. A body is read after its
// type was checked and its size is limited; of its members only those that are expected are used.

#include "http_serving.hpp"

#include <simplenet/http.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

using namespace simplenet;
using nlohmann::json;

namespace {

constexpr std::size_t longest_body = std::size_t{64} * 1024;
constexpr std::size_t most_notes = 1000;

// --- the notes, which know nothing of HTTP -------------------------------------------------------

struct note {
    std::string text;
    bool done = false;
};

/// Any thread.
class notebook {
public:
    /// Empty: it is full.
    std::optional<unsigned> add(note added) {
        const std::lock_guard locked{mutex_};
        if (all_.size() >= most_notes) return std::nullopt;
        all_.emplace(++last_, std::move(added));
        return last_;
    }
    [[nodiscard]] std::map<unsigned, note> all() const {
        const std::lock_guard locked{mutex_};
        return all_;
    }
    [[nodiscard]] std::optional<note> find(unsigned number) const {
        const std::lock_guard locked{mutex_};
        const auto found = all_.find(number);
        return found == all_.end() ? std::nullopt : std::optional{found->second};
    }
    /// Empty: there is no such note.
    std::optional<note> change(unsigned number, const std::optional<std::string>& text,
                               std::optional<bool> done) {
        const std::lock_guard locked{mutex_};
        const auto found = all_.find(number);
        if (found == all_.end()) return std::nullopt;
        if (text) found->second.text = *text;
        if (done) found->second.done = *done;
        return found->second;
    }
    bool remove(unsigned number) {
        const std::lock_guard locked{mutex_};
        return all_.erase(number) != 0;
    }

private:
    mutable std::mutex mutex_;
    std::map<unsigned, note> all_;
    unsigned last_ = 0;
};

// --- JSON ----------------------------------------------------------------------------------------

json to_json(unsigned number, const note& of) {
    return {{"id", number}, {"text", of.text}, {"done", of.done}};
}

/// What a body asks for. A value of another type, or an unknown member, is an error.
struct wishes {
    std::optional<std::string> text;
    std::optional<bool> done;
};
std::optional<wishes> parse_wishes(std::string_view body) {
    const json parsed = json::parse(body, nullptr, false); // false: without exceptions
    if (!parsed.is_object()) return std::nullopt;
    wishes found;
    for (const auto& [name, value] : parsed.items()) {
        if (name == "text" && value.is_string()) {
            found.text = value.get<std::string>();
        } else if (name == "done" && value.is_boolean()) {
            found.done = value.get<bool>();
        } else {
            return std::nullopt;
        }
    }
    return found;
}

// --- answers -------------------------------------------------------------------------------------

task<result<>> send_text(http::response& answer, std::string text) {
    co_return co_await answer.send("application/json", text);
}
// dump() would recurse as deep as the value is nested: only values that are made here are sent.
task<result<>> send_json(http::response& answer, unsigned status, const json& value) {
    return send_text(answer.status(status), value.dump() + '\n');
}
task<result<>> refuse(http::response& answer, unsigned status, std::string_view why) {
    return send_json(answer, status, {{"error", why}});
}
task<result<>> no_such_note(http::response& answer) {
    return refuse(answer, 404, "there is no such note");
}

// --- handlers ------------------------------------------------------------------------------------

notebook notes;

/// The `{id}` of the route; 0, which no note has, if it is not a number.
unsigned id_of(const http::request& asked) {
    const std::string_view text = asked.parameter("id");
    unsigned number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    return problem == std::errc{} && end == text.data() + text.size() ? number : 0;
}

/// `application/json`, with or without parameters. Requiring it keeps the forms of foreign pages
/// out: a browser sends this type across origins only after it has asked (CORS), and gets no leave.
bool is_json(const http::request& asked) {
    std::string_view type = asked.fields().find("Content-Type").value_or("");
    type = type.substr(0, type.find_first_of("; \t"));
    return std::ranges::equal(type, std::string_view{"application/json"}, {}, [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
    });
}

task<result<>> list_notes(http::request&, http::response& answer) {
    json list = json::array();
    for (const auto& [number, each] : notes.all())
        list.push_back(to_json(number, each));
    return send_json(answer, 200, list);
}

//! [post]
task<result<>> add_note(http::request& asked, http::response& answer) {
    if (!is_json(asked)) co_return co_await refuse(answer, 415, "send application/json");
    const auto body = co_await asked.read_all(longest_body);
    if (!body) co_return fail(body); // answered with 400, 408 or 413
    const auto wanted = parse_wishes(*body);
    if (!wanted || !wanted->text) co_return co_await refuse(answer, 400, "a note has a text");
    const note added{*wanted->text, wanted->done.value_or(false)};
    const auto number = notes.add(added);
    if (!number) co_return co_await refuse(answer, 507, "there are too many notes");
    answer.set("Location", "/notes/" + std::to_string(*number));
    const json reply = to_json(*number, added);
    co_return co_await send_json(answer, 201, reply);
}
//! [post]

task<result<>> read_note(http::request& asked, http::response& answer) {
    const auto found = notes.find(id_of(asked));
    return found ? send_json(answer, 200, to_json(id_of(asked), *found)) : no_such_note(answer);
}

task<result<>> change_note(http::request& asked, http::response& answer) {
    if (!is_json(asked)) co_return co_await refuse(answer, 415, "send application/json");
    const auto body = co_await asked.read_all(longest_body);
    if (!body) co_return fail(body);
    const auto wanted = parse_wishes(*body);
    if (!wanted) co_return co_await refuse(answer, 400, "only text and done can be changed");
    const auto changed = notes.change(id_of(asked), wanted->text, wanted->done);
    if (!changed) co_return co_await no_such_note(answer);
    const json reply = to_json(id_of(asked), *changed);
    co_return co_await send_json(answer, 200, reply);
}

task<result<>> remove_note(http::request& asked, http::response& answer) {
    if (!notes.remove(id_of(asked))) co_return co_await no_such_note(answer);
    answer.status(204); // sent when the handler ends
    co_return result<>{};
}

} // namespace

int main(int argc, char** argv) {
    const auto given = example::read_server_options(argc, argv, "http_routes");
    http::router routes;
    //! [routes]
    routes.get("/notes", list_notes)
        .post("/notes", add_note, {.body = longest_body})
        .get("/notes/{id}", read_note)
        .patch("/notes/{id}", change_note, {.body = longest_body})
        .del("/notes/{id}", remove_note);
    //! [routes]
    return example::serve_http(given, std::move(routes));
}
