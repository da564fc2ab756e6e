#include "http/files/static_handler.hpp"

#include "http/codec/negotiate.hpp"
#include "http/codec/target.hpp"
#include "http/files/file_cache.hpp"
#include "http/files/listing.hpp"
#include "http/files/media_types.hpp"
#include "http/files/open_beneath.hpp"
#include "http/server/exchange.hpp"
#include "http/server/service.hpp"

#include <simplenet/runtime/run_blocking.hpp>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

namespace {

/// Sends the client to the path with a slash, where the links of a page are relative to it.
task<result<>> redirect_to_slash(request& asked, response& answer) {
    std::string to = percent_encode_path(asked.path()) + '/';
    if (!asked.query().empty()) to.append("?").append(asked.query());
    answer.set("Location", to);
    return exchange::of(asked).answer_with(301);
}

class slash_redirect final : public route_handler {
public:
    slash_redirect() noexcept
        : route_handler{true} {}
    [[nodiscard]] task<> serve(request&, response&) override { std::unreachable(); }
    [[nodiscard]] task<result<>> report(request& asked, response& answer) override {
        return redirect_to_slash(asked, answer);
    }
};

/// Shared by the loops; each has a cache of its own.
class static_handler final : public route_handler {
public:
    static_handler(file_cache::root_ref root, const static_options& options)
        : route_handler{true}
        , root_{std::move(root)}
        , index_{options.index.begin(), options.index.end()}
        , cache_control_{options.cache_control}
        , options_{options} {
        options_.index = {};
        options_.cache_control = {};
    }

    [[nodiscard]] task<> serve(request&, response&) override { std::unreachable(); }

    [[nodiscard]] task<result<>> report(request& asked, response& answer) override {
        exchange& with = exchange::of(asked);
        const std::string_view path = with.rest_of_path();
        if (path.find('%') != std::string_view::npos) {
            if (has_encoded_slash(path)) return with.answer_with(404);
            return serve_decoded(asked, answer, path);
        }
        // Nearly always, and without the coroutines of a lookup.
        if (auto known = cache_of(with)->find(path); known && *known && !(**known)->is_directory) {
            return send_known(asked, answer, **std::move(known));
        }
        return serve_path(asked, answer, path);
    }

private:
    task<result<>> serve_decoded(request& asked, response& answer, std::string_view path) {
        const std::string decoded = decoded_parameter(path);
        co_return co_await serve_path(asked, answer, decoded);
    }

    task<result<>> serve_path(request& asked, response& answer, std::string_view path) {
        const bool as_directory = path.empty() || path.ends_with('/');
        if (path.ends_with('/')) path.remove_suffix(1);
        const auto cache = cache_of(exchange::of(asked));
        const result<served_ref> found = co_await cache->open(path);
        if (!found) co_return co_await refuse(asked, found.error());
        if (!(*found)->is_directory) {
            if (as_directory) co_return co_await exchange::of(asked).answer_with(404);
            co_return co_await send(asked, answer, **found);
        }
        if (!as_directory) co_return co_await redirect_to_slash(asked, answer);
        for (const std::string& name : index_) {
            const std::string inside = path.empty() ? name : std::string{path} + '/' + name;
            const result<served_ref> index = co_await cache->open(inside);
            if (index && !(*index)->is_directory) co_return co_await send(asked, answer, **index);
            if (!index && !is_missing(index.error())) {
                co_return co_await refuse(asked, index.error());
            }
        }
        if (!options_.listing) co_return co_await exchange::of(asked).answer_with(404);
        co_return co_await send_listing(asked, answer, path);
    }

    [[nodiscard]] std::shared_ptr<file_cache> cache_of(exchange& with) const {
        return with.loop().local<file_cache>(
            this, [this] { return std::make_shared<file_cache>(root_, options_); });
    }

    task<result<>> send_known(request& asked, response& answer, served_ref file) {
        co_return co_await send(asked, answer, *file);
    }

    task<result<>> send(request& asked, response& answer, const served_file& file) {
        exchange& with = exchange::of(asked);
        const open_file* chosen = &file.plain;
        if (file.gzip || file.br) {
            answer.add("Vary", "Accept-Encoding");
            const auto accepted = read_accept_encoding(with.entries(), with.head());
            const auto coding = choose_coding(accepted, file.gzip.has_value(), file.br.has_value());
            if (coding == content_coding::gzip) chosen = &*file.gzip;
            if (coding == content_coding::br) chosen = &*file.br;
            if (chosen != &file.plain) answer.set("Content-Encoding", name_of(*coding));
        }
        if (!cache_control_.empty()) answer.set("Cache-Control", cache_control_);
        const http::file_options described{.content_type = file.content_type,
                                           .entity_tag = chosen->etag,
                                           .last_modified = chosen->modified};
        const content_source from{.fd = chosen->fd.get(),
                                  .memory = chosen->in_memory ? reinterpret_cast<const std::byte*>(
                                                                    chosen->contents.data())
                                                              : nullptr};
        return with.send_content(from, chosen->size, described);
    }

    task<result<>> send_listing(request& asked, response& answer, std::string_view path) {
        const std::string title = decoded_parameter(asked.path());
        const listing_options with{.rules = rules(), .title = title, .parent = !path.empty()};
        const result<std::string> page =
            co_await run_blocking(list_directory, root_->get(), path, with);
        if (!page) co_return co_await refuse(asked, page.error());
        answer.set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
        co_return co_await answer.send("text/html; charset=utf-8", *page);
    }

    static task<result<>> refuse(request& asked, std::error_code why) {
        const unsigned status = status_of(why);
        if (status != 500) co_return co_await exchange::of(asked).answer_with(status);
        co_return fail(why);
    }

    [[nodiscard]] open_rules rules() const noexcept {
        return {.follow = options_.follow, .hidden = options_.hidden};
    }

    const file_cache::root_ref root_;
    const std::vector<std::string> index_;
    const std::string cache_control_;
    static_options options_; // without its views
};

} // namespace

std::shared_ptr<route_handler> make_static_handler(std::string_view directory,
                                                   const static_options& options) {
    result<unique_fd> root = open_root(directory);
    if (!root) throw std::system_error{root.error(), std::string{directory}};
    static_cast<void>(media_type_of("")); // reads the table of the system
    return std::make_shared<static_handler>(std::make_shared<const unique_fd>(*std::move(root)),
                                            options);
}

std::shared_ptr<route_handler> make_slash_redirect() {
    return std::make_shared<slash_redirect>();
}

} // namespace simplenet::v0::http::detail
