#include <simplenet/net/resolve.hpp>

#include "net/host_name.hpp"
#include "net/lookup.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/detail/refusal.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace detail {

using namespace std::chrono_literals;

std::error_code merge_errors(std::error_code v6, std::error_code v4) noexcept {
    return v4 == errc::name_not_found && v6 != errc::name_not_found ? v6 : v4;
}

result<std::vector<endpoint>> merge(const lookup_result& v6, const lookup_result& v4) {
    if (!v6 && !v4) return fail(merge_errors(v6.error(), v4.error()));
    if (!v6) return (*v4)->endpoints;
    if (!v4) return (*v6)->endpoints;
    const bool v4_first = !(*v6)->reachable && (*v4)->reachable;
    const auto& [first, second] = v4_first ? std::pair{&**v4, &**v6} : std::pair{&**v6, &**v4};
    std::vector<endpoint> all = first->endpoints;
    all.insert(all.end(), second->endpoints.begin(), second->endpoints.end());
    return all;
}

namespace {

sys::name_question question_for(const sys::name_question& both, address_family family) {
    sys::name_question question = both;
    question.family = family;
    return question;
}

task<result<std::vector<endpoint>>> look_up_families(sys::name_question question) {
    if (question.family != address_family::any) {
        lookup_operation lookup{std::move(question)};
        auto answer = co_await std::move(lookup);
        if (!answer) co_return fail(answer);
        co_return (*answer)->endpoints;
    }
    lookup_operation v6{question_for(question, address_family::v6)};
    lookup_operation v4{question_for(question, address_family::v4)};
    auto both = when_all(std::move(v6), std::move(v4));
    const auto answers = co_await std::move(both);
    co_return merge(std::get<0>(answers), std::get<1>(answers));
}

/// Without a port, `service` is looked up.
task<result<std::vector<endpoint>>> resolve(std::string host, std::string service,
                                            std::optional<std::uint16_t> port,
                                            resolve_options options) {
    auto given = read_host(host);
    if (!given) co_return fail(given);
    if (!port) {
        auto read = read_service(service);
        if (!read) co_return fail(read);
        port = *read;
    }

    sys::name_question question;
    question.family = options.family;
    question.datagram = options.datagram;
    if (given->address) {
        if (!is_of(*given->address, options.family)) co_return fail(errc::name_not_found);
        if (port) {
            // Nothing has to wait, but a stopped task is refused here too.
            if (auto refused = co_await refusal{}; !refused) co_return fail(refused);
            co_return std::vector{endpoint{*given->address, *port}};
        }
        question.host = given->address->to_string();
        question.family = family_of(*given->address);
    } else {
        question.host = std::move(given->name);
    }
    // Without its port the question is the same for every port.
    if (!port) question.service = std::move(service);

    auto asking = look_up_families(std::move(question)); // GCC 12: no aggregate in a co_await
    auto found = co_await std::move(asking);
    if (found && port) {
        for (endpoint& each : *found)
            each = endpoint{each.address(), *port};
    }
    co_return found;
}

} // namespace
} // namespace detail

inline namespace runtime {

const std::error_category& resolver_category() noexcept {
    return detail::sys::resolver_category();
}

// Not coroutines: the texts of the views are copied before these return.

task<result<std::vector<endpoint>>> async_resolve(std::string_view host, std::uint16_t port,
                                                  resolve_options options) {
    return detail::resolve(std::string{host}, {}, port, options);
}

task<result<std::vector<endpoint>>> async_resolve(std::string_view host, std::string_view service,
                                                  resolve_options options) {
    return detail::resolve(std::string{host}, std::string{service}, std::nullopt, options);
}

} // namespace runtime
} // namespace simplenet::v0
