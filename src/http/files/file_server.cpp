#include "http/files/file_server.hpp"

#include "http/codec/negotiate.hpp"
#include "http/codec/target.hpp"
#include "http/files/listing_cache.hpp"
#include "http/files/media_types.hpp"
#include "http/server/exchange.hpp"
#include "http/server/none_left.hpp"
#include "http/server/service.hpp"

#include <system_error>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// For each loop, whatever the number of roots: lookups of files find one of the other threads of
/// run_blocking(), four for each CPU. The address is the key under which a loop keeps the turns.
constexpr std::size_t listings_at_a_time = 1;

/// Bytes. Sending a larger page is a long step of a loop.
constexpr std::size_t large_page = std::size_t{64} << 10;

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
    [[nodiscard]] now_or_task<result<>> report(request& asked, response& answer) override {
        return redirect_to_slash(asked, answer);
    }
};

class static_handler final : public route_handler {
public:
    static_handler(std::string_view directory, const static_options& options)
        : route_handler{true}
        , server_{directory, options} {}
    [[nodiscard]] task<> serve(request&, response&) override { std::unreachable(); }
    [[nodiscard]] now_or_task<result<>> report(request& asked, response& answer) override {
        const std::string_view path = exchange::of(asked).rest_of_path();
        return answer_left(asked, server_.attempt(asked, answer, path));
    }

private:
    file_server server_;
};

/// A failure that is no refusal of the path goes to whoever logs the failures of handlers.
result<unsigned> left_by(std::error_code why) {
    const unsigned status = status_of(why);
    if (status == 500) return fail(why);
    return status;
}

task<result<unsigned>> end_sending(exchange& with, served_ref file, now_or_task<result<>> sending) {
    const served_ref kept = std::move(file); // until it has been sent
    const result<> sent = co_await std::move(sending);
    if (!sent) co_return fail(sent);
    co_return with.take_refusal();
}

task<result<>> answer_left_later(request& asked, now_or_task<result<unsigned>> attempt) {
    const result<unsigned> left = co_await std::move(attempt);
    if (!left) co_return fail(left);
    if (*left != 0) co_return co_await exchange::of(asked).answer_with(*left);
    co_return result<>{};
}

} // namespace

now_or_task<result<>> answer_left(request& asked, now_or_task<result<unsigned>> attempt) {
    if (const auto* const left = attempt.now(); left != nullptr && *left && **left == 0)
        return result<>{};
    return answer_left_later(asked, std::move(attempt));
}

file_server::file_server(std::string_view directory, const static_options& options)
    : root_{[&] {
        result<unique_fd> root = open_root(directory);
        if (!root) throw std::system_error{root.error(), std::string{directory}};
        return std::make_shared<const unique_fd>(*std::move(root));
    }()}
    , index_{options.index.begin(), options.index.end()}
    , cache_control_{options.cache_control}
    , options_{options} {
    options_.index = {};
    options_.cache_control = {};
    static_cast<void>(media_type_of("")); // reads the table of the system
}

std::shared_ptr<file_cache> file_server::cache_of(exchange& with) const {
    return with.loop().local<file_cache>(
        this, [this] { return std::make_shared<file_cache>(root_, options_); });
}

std::shared_ptr<listing_cache> file_server::listings_of(exchange& with) const {
    return with.loop().local<listing_cache>(&options_, [&] {
        auto turns = with.loop().local<fair_places>(
            &listings_at_a_time, [] { return std::make_shared<fair_places>(listings_at_a_time); });
        return std::make_shared<listing_cache>(root_, options_, std::move(turns));
    });
}

now_or_task<result<unsigned>> file_server::attempt(request& asked, response& answer,
                                                   std::string_view path) {
    // The body of an error may be a file, whatever the method was.
    const bool is_plain = answer.status() == 200;
    if (is_plain && asked.method() != "GET" && asked.method() != "HEAD") {
        answer.set("Allow", "GET, HEAD");
        return result<unsigned>{405U};
    }
    if (path.find('%') != std::string_view::npos) {
        if (has_encoded_slash(path)) return result<unsigned>{404U};
        return serve_decoded(asked, answer, path);
    }
    // Nearly always, and without the coroutines of a lookup.
    if (auto known = cache_of(exchange::of(asked))->find(path);
        known && *known && !(**known)->is_directory) {
        return send_known(asked, answer, **std::move(known));
    }
    return serve_path(asked, answer, path);
}

task<file_kind> file_server::look(request& asked, std::string_view path) {
    if (has_encoded_slash(path)) co_return file_kind::missing;
    const std::string decoded = decoded_parameter(path);
    std::string_view of = decoded;
    const bool as_directory = of.empty() || of.ends_with('/');
    if (of.ends_with('/')) of.remove_suffix(1);
    const auto cache = cache_of(exchange::of(asked));
    const result<served_ref> found = co_await cache->open(of);
    if (!found) {
        const bool is_refused = status_of(found.error()) == 404;
        co_return is_refused ? file_kind::missing : file_kind::file;
    }
    if ((*found)->is_directory) co_return file_kind::directory;
    co_return as_directory ? file_kind::missing : file_kind::file;
}

task<result<unsigned>> file_server::serve_decoded(request& asked, response& answer,
                                                  std::string_view path) {
    const std::string decoded = decoded_parameter(path);
    co_return co_await serve_path(asked, answer, decoded);
}

task<result<unsigned>> file_server::serve_path(request& asked, response& answer,
                                               std::string_view path) {
    const bool as_directory = path.empty() || path.ends_with('/');
    if (path.ends_with('/')) path.remove_suffix(1);
    const auto cache = cache_of(exchange::of(asked));
    const result<served_ref> found = co_await cache->open(path);
    if (!found) co_return left_by(found.error());
    if (!(*found)->is_directory) {
        if (as_directory) co_return 404U;
        co_return co_await send_known(asked, answer, *found);
    }
    if (!as_directory) {
        const result<> redirected = co_await redirect_to_slash(asked, answer);
        if (!redirected) co_return fail(redirected);
        co_return 0U;
    }
    for (const std::string& name : index_) {
        const std::string inside = path.empty() ? name : std::string{path} + '/' + name;
        const result<served_ref> index = co_await cache->open(inside);
        if (index && !(*index)->is_directory) co_return co_await send_known(asked, answer, *index);
        if (!index && !is_missing(index.error())) co_return left_by(index.error());
    }
    if (!options_.listing) co_return 404U;
    co_return co_await send_listing(asked, answer, path);
}

now_or_task<result<unsigned>> file_server::send_known(request& asked, response& answer,
                                                      served_ref file) {
    now_or_task<result<>> sending = send(asked, answer, *file);
    if (sending.now() == nullptr) {
        return end_sending(exchange::of(asked), std::move(file), std::move(sending));
    }
    return none_left(std::move(sending));
}

now_or_task<result<>> file_server::send(request& asked, response& answer, const served_file& file) {
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
    content_source from{.fd = chosen->fd.get(),
                        .memory = chosen->in_memory
                                      ? reinterpret_cast<const std::byte*>(chosen->contents.data())
                                      : nullptr,
                        .leaves_refusals = true};
    http::file_options described{.content_type = file.content_type};
    // A page of an error is not what the client asked for: 412 keeps the tag of that.
    if (answer.status() < 400) {
        from.validators = chosen->validators;
        described.entity_tag = chosen->etag;
        described.last_modified = chosen->modified;
    }
    return with.send_content(from, chosen->size, described);
}

task<result<unsigned>> file_server::send_listing(request& asked, response& answer,
                                                 std::string_view path) {
    exchange& with = exchange::of(asked);
    const std::string title = decoded_parameter(asked.path());
    const auto cache = listings_of(with);
    const listing_client by{with.native_handle(), key_of(asked.peer().address())};
    const result<page_ref> page = co_await cache->page(by, path, title);
    if (!page) co_return left_by(page.error());
    // Many may be sent it in one turn of the loop, and the kernel copies 1 MB in 0.3 ms.
    if ((*page)->size() > large_page) co_await with.take_turn();
    answer.set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    const result<> sent = co_await answer.send("text/html; charset=utf-8", **page);
    if (!sent) co_return fail(sent);
    co_return 0U;
}

std::shared_ptr<route_handler> make_static_handler(std::string_view directory,
                                                   const static_options& options) {
    return std::make_shared<static_handler>(directory, options);
}

std::shared_ptr<route_handler> make_slash_redirect() {
    return std::make_shared<slash_redirect>();
}

} // namespace simplenet::v0::http::detail

namespace simplenet::v0::http {

file_handler::file_handler(std::string_view directory, const static_options& options)
    : server_{std::make_shared<detail::file_server>(directory, options)} {}

now_or_task<result<>> file_handler::operator()(request& asked, response& answer) const {
    return detail::answer_left(asked, attempt(asked, answer));
}

now_or_task<result<unsigned>> file_handler::attempt(request& asked, response& answer) const {
    const std::string_view path = asked.path();
    return server_->attempt(asked, answer, path.substr(path.starts_with('/') ? 1 : 0));
}

task<file_kind> file_handler::look(request& asked, std::string_view path) const {
    return server_->look(asked, path.substr(path.starts_with('/') ? 1 : 0));
}

} // namespace simplenet::v0::http
