#include <simplenet/server/basic_server.hpp>

#include "server/server_core.hpp"
#include "server/server_site.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/coro/scoped.hpp>

#include <utility>

namespace simplenet::v0 {
namespace detail {

// Not in an anonymous namespace, see src/net/sockets.cpp.
task<shutdown_report> shut_down(std::shared_ptr<server_core> core, std::chrono::nanoseconds grace) {
    const scope& here = co_await own_scope{};
    server_site* const site = server_site::around(here);
    if (site != nullptr && site->belongs_to(*core)) site->excuse(here);
    const auto reported = core->subscribe();
    core->begin_shutdown(grace);
    const auto waited = co_await reported->receive();
    if (waited.error() != errc::end_of_stream) { // a stop
        core->begin_shutdown({});
        static_cast<void>(co_await shield(reported->receive()));
    }
    co_return core->report();
}

} // namespace detail

inline namespace runtime {

basic_server& basic_server::operator=(basic_server&& other) noexcept {
    if (this != &other) {
        end();
        core_ = std::move(other.core_);
    }
    return *this;
}

basic_server::~basic_server() {
    end();
}

void basic_server::end() noexcept {
    if (core_) core_->end();
    core_.reset();
}

detail::server_core& basic_server::core() const noexcept {
    SIMPLENET_EXPECTS(core_ != nullptr, "a server was used after it was moved from");
    return *core_;
}

task<shutdown_report> basic_server::shutdown(std::chrono::nanoseconds grace) {
    return detail::shut_down(core().shared_from_this(), grace);
}

void basic_server::request_shutdown(std::chrono::nanoseconds grace) noexcept {
    core().begin_shutdown(grace);
}

result<std::vector<unique_fd>> basic_server::duplicate_listeners() const {
    return core().duplicate_listeners();
}

bool basic_server::is_accepting() const noexcept {
    return !core().all_accepted();
}

server_statistics basic_server::statistics() const {
    return core().statistics();
}

result<> basic_server::begin(std::unique_ptr<detail::any_handler> handler) {
    return core().serve(std::move(handler));
}

} // namespace runtime
} // namespace simplenet::v0
