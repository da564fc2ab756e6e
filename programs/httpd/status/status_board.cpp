#include "httpd/status/status_board.hpp"

#include "httpd/log/access_log.hpp"
#include "httpd/log/error_log.hpp"

#include <chrono>
#include <utility>

namespace httpd {

void status_board::reloaded(bool succeeded) noexcept {
    ++(succeeded ? reloads_succeeded_ : reloads_failed_);
    latest_reload_failed_ = !succeeded;
}

void status_board::set_sources(status_sources sources) {
    const std::lock_guard held{mutex_};
    std::swap(sources_, sources);
}

status_figures status_board::figures() const {
    status_figures made;
    made.version = version_;
    made.now = std::chrono::system_clock::now();
    made.process = read_process_figures();
    made.traffic = traffic_.figures();
    made.reloads = {reloads_succeeded_, reloads_failed_, latest_reload_failed_};

    const std::lock_guard held{mutex_};
    if (sources_.servers) made.servers = sources_.servers();
    if (sources_.upstreams) made.upstreams = sources_.upstreams();
    if (sources_.certificates) made.certificates = sources_.certificates();
    if (sources_.access != nullptr) made.logs.access_lost = sources_.access->dropped();
    if (sources_.errors != nullptr) {
        made.logs.error_lost = sources_.errors->dropped();
        made.logs.error_suppressed = sources_.errors->suppressed();
    }
    return made;
}

} // namespace httpd
