#include "http/fastcgi/script_finder.hpp"

#include "http/files/open_beneath.hpp"

#include <simplenet/runtime/run_blocking.hpp>

#include <utility>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::string_view script_suffix = ".php";
constexpr std::chrono::seconds known_for{1};
constexpr std::size_t most_known = 1000;

[[nodiscard]] script_path cut(std::string_view path, std::size_t size) noexcept {
    return {path.substr(0, size), path.substr(size)};
}

} // namespace

std::size_t next_script_end(std::string_view path, std::size_t from) noexcept {
    for (std::size_t at = from; (at = path.find(script_suffix, at)) != std::string_view::npos;) {
        at += script_suffix.size();
        if (at == path.size() || path[at] == '/') return at;
    }
    return std::string_view::npos;
}

result<std::size_t> look_for_script(const std::string& root, std::string_view path,
                                    symlinks follow) noexcept {
    const result<unique_fd> opened_root = open_root(root);
    if (!opened_root) {
        if (is_missing(opened_root.error())) return std::string_view::npos;
        return fail(opened_root);
    }
    for (std::size_t end = 0;;) {
        end = next_script_end(path, end);
        if (end == std::string_view::npos) return 0;
        const result<opened> file = open_beneath(opened_root->get(), path.substr(1, end - 1),
                                                 access::look, {.follow = follow});
        // What is behind something that is missing is missing too.
        if (!file && is_missing(file.error())) return 0;
        if (!file) return fail(file);
        if (!file->is_directory()) return end;
    }
}

now_or_task<result<script_path>> script_finder::find(std::string_view path) {
    std::size_t end = next_script_end(path, 0);
    if (end == std::string_view::npos) return result<script_path>{};
    const auto now = clock::now();
    for (; end != std::string_view::npos; end = next_script_end(path, end)) {
        const auto known = known_.find(path.substr(0, end));
        if (known != known_.end() && now < known->second)
            return result<script_path>{cut(path, end)};
    }
    return look(path);
}

task<result<script_path>> script_finder::look(std::string_view path) {
    // Copies: a call on another thread may outlast the loop.
    auto call = [](const std::string& root, const std::string& within, symlinks follow) {
        return look_for_script(root, within, follow);
    };
    const result<std::size_t> found = co_await run_blocking(
        call, std::string{settings_.root}, std::string{path}, settings_.options.follow);
    if (!found) co_return fail(found);
    if (*found == std::string_view::npos) {
        // It is on another machine, or gone.
        if (!settings_.root_may_be_elsewhere) co_return script_path{};
        const std::size_t end = next_script_end(path, 0);
        co_return cut(path, end);
    }
    if (*found == 0) co_return script_path{};
    if (known_.size() >= most_known) known_.clear();
    known_.insert_or_assign(std::string{path.substr(0, *found)}, clock::now() + known_for);
    co_return cut(path, *found);
}

} // namespace simplenet::v0::http::detail
