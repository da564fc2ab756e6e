#include "httpd/process/program.hpp"

#include "httpd/config/certificates.hpp"
#include "httpd/config/check.hpp"
#include "httpd/config/problem.hpp"
#include "httpd/log/access_log.hpp"
#include "httpd/log/error_log.hpp"
#include "httpd/process/crowd_watch.hpp"
#include "httpd/process/listener_set.hpp"
#include "httpd/process/listening_sockets.hpp"
#include "httpd/process/privileges.hpp"
#include "httpd/process/service_manager.hpp"
#include "httpd/serve/sites.hpp"
#include "httpd/status/status_board.hpp"
#include "httpd/status/status_server.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/io/loop_event.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/runtime/run.hpp>
#include <simplenet/runtime/signal_set.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <malloc.h>
#include <unistd.h>

namespace httpd {

namespace http = simplenet::http;
using simplenet::result;
using simplenet::task;

namespace {

/// Fewer for clients, files and backends together are told at the start.
constexpr std::uint64_t least_descriptors = 64;

/// What is thrown where the program cannot go on, or not by a new configuration.
std::runtime_error failure(std::string what, std::error_code why) {
    return std::runtime_error{std::move(what) + ": " + why.message()};
}

template <class T>
T value_or_throw(result<T> from, const std::string& what) {
    if (!from) throw failure(what, from.error());
    return *std::move(from);
}

/// Calls on the loops.
class request_observer {
public:
    request_observer(access_log& log, status_board& board) noexcept
        : log_{log}
        , board_{board} {}

    [[nodiscard]] answer_observer hook() noexcept {
        return {.on_answered =
                    [](const http::answered_request& what, void* self) noexcept {
                        static_cast<request_observer*>(self)->tell(what);
                    },
                .context = this};
    }

private:
    void tell(const http::answered_request& what) noexcept {
        const http::request& asked = what.asked;
        const bool is_understood = !asked.method().empty();
        access_entry entry{.peer = asked.peer(),
                           .user = asked.user(),
                           .method = asked.method(),
                           .target = asked.target(),
                           .host = asked.host(),
                           .version = is_understood ? asked.version() : 0,
                           .status = what.status,
                           .body_bytes = what.body_bytes,
                           .duration = what.duration,
                           .complete = what.complete,
                           .secure = asked.secure(),
                           .site = asked.label()};
        board_.answered(entry);
        if (log_.is_off()) return;
        entry.referer = asked.fields().find("Referer").value_or(std::string_view{});
        entry.user_agent = asked.fields().find("User-Agent").value_or(std::string_view{});
        log_.append(entry);
    }

    access_log& log_;
    status_board& board_;
};

void report_gateway(const http::gateway_report& report, void* context) {
    error_log& log = *static_cast<error_log*>(context);
    using http::gateway_event;
    const log_field backend{"backend", report.backend};
    const log_field text{"text", report.text};
    const log_field error{"error", report.error};
    switch (report.kind) {
    case gateway_event::message:
        return log.write(log_level::warning, "a backend says", {backend, text});
    case gateway_event::failed:
        return log.write(log_level::error, "a backend failed", {backend, text, error});
    case gateway_event::recovered:
        return log.write(log_level::info, "a backend answers again", {backend});
    case gateway_event::bad_answer:
        return log.write(log_level::error, "a backend's answer makes no sense",
                         {backend, text, error});
    case gateway_event::trouble:
        if (report.backend.empty()) {
            return log.write(log_level::error, "a request could not be passed on", {text, error});
        }
        return log.write(log_level::error, "a request could not be passed on",
                         {backend, text, error});
    case gateway_event::not_stored:
        return log.write(log_level::warning, "answers are not stored for slow clients",
                         {{"directory", report.text}, error});
    case gateway_event::slow_client:
        return log.write(log_level::warning,
                         "a client took nothing of its answer while others waited", {backend});
    }
}

/// Tells the error log that new connections wait, once for each shortage.
class shortage_report {
public:
    explicit shortage_report(error_log& log) noexcept
        : log_{log} {}

    /// loop_options::on_event, whose context is this.
    static void event(const simplenet::loop_event& event, void* self) {
        if (event.kind != simplenet::loop_event_kind::accept_paused) return;
        static_cast<shortage_report*>(self)->paused(event.error);
    }

private:
    using clock = std::chrono::steady_clock;

    void paused(std::error_code why) noexcept {
        constexpr std::chrono::seconds one_shortage{10}; // listeners try again and again
        const auto now = clock::now().time_since_epoch();
        clock::duration before = latest_.exchange(now, std::memory_order_relaxed);
        if (before != clock::duration::zero() && now - before < one_shortage) return;
        log_.write(log_level::error, "new connections wait", {{"error", why}});
    }

    error_log& log_;
    std::atomic<clock::duration> latest_{clock::duration::zero()};
};

class program {
public:
    program(const command_line& line, const reading_result& first);

    [[nodiscard]] task<> attend();

private:
    void serve(const configuration& with);
    /// For the address of [status] in `with`, if that is another one than before.
    [[nodiscard]] listening_sockets open_status(const configuration& with);
    [[nodiscard]] status_sources sources(const configuration& of,
                                         const std::shared_ptr<const sites>& served);
    [[nodiscard]] task<> reload();
    /// Signals that mean the same while the program serves and while it ends; ignores others.
    void act_on(int signal);
    /// Throws if `next` cannot be served; then nothing has changed.
    void change_to(const configuration& next);
    [[nodiscard]] task<> end();
    [[nodiscard]] task<> cut_at_next_signal();
    [[nodiscard]] task<> watch_crowds();
    /// What malloc(3) keeps of the memory that a crowd needed goes back when the crowd has left.
    void give_memory_back(crowd_watch& crowd);
    void announce();
    /// Those that have come or gone since the last call.
    void tell_addresses();

    struct served_address {
        bool is_status;
        std::string at;
        bool operator==(const served_address&) const = default;
    };

    const command_line& line_;
    simplenet::signal_set signals_; // before there are threads
    passed_sockets passed_;
    const configuration first_; // of it, what a reload cannot change goes on
    configuration now_;
    error_log errors_;
    access_log access_;
    const std::shared_ptr<status_board> board_ =
        std::make_shared<status_board>(SIMPLENET_HTTPD_VERSION);
    request_observer observer_;
    shortage_report shortages_{errors_};
    simplenet::event_loop_group group_;
    listener_set listeners_;
    std::shared_ptr<const sites> sites_;
    std::optional<simplenet::endpoint> status_at_;
    std::optional<status_server> status_;
    std::vector<served_address> told_;
};

/// A reload reads everything again, as the user that the program has become. `first` is what was
/// found before.
void check_access(const reading_result& first) {
    const configuration& of = first.configuration;
    problems found;
    check_files(of, found);
    if (!of.file.empty() && ::access(of.file.c_str(), R_OK) != 0)
        found.add({}, "the file itself: " + std::generic_category().message(errno));
    const auto is_new = [said = first.problems.sorted()](const problem& one) {
        return std::ranges::find(said, one.text, &problem::text) == said.end();
    };
    if (found.can_start()) {
        for (const problem& each : found.sorted())
            if (is_new(each)) std::fprintf(stderr, "%s\n", to_text(each, of.file).c_str());
        return;
    }
    std::string all = "as the user " + of.user->name + ", a reload could not read:";
    for (const problem& each : found.sorted())
        if (each.severity == severity::error) all += '\n' + to_text(each, of.file);
    throw std::runtime_error{all};
}

passed_sockets take_passed_and_become_user(const reading_result& first) {
    auto passed = value_or_throw(passed_sockets::take_all(), "sockets of the service manager");
    if (const auto& user = first.configuration.user) {
        const result<> became = become(*user);
        if (!became) throw failure("cannot become the user " + user->name, became.error());
        check_access(first);
    }
    return passed;
}

error_log open_error_log(const log_options& of) {
    return value_or_throw(error_log::open({.path = of.error, .level = of.level}), of.error);
}

access_log open_access_log(const log_options& of, error_log& errors) {
    return value_or_throw(
        access_log::open({.path = of.access, .format = of.format, .errors = &errors}), of.access);
}

simplenet::event_loop_group make_group(const configuration& of, shortage_report& told) {
    const simplenet::loop_options loop{
        .backend = of.backend, .on_event = shortage_report::event, .event_context = &told};
    return value_or_throw(simplenet::event_loop_group::create(
                              {.loops = of.workers, .pin = of.pin, .loop = loop, .name = "httpd"}),
                          "cannot start the loops");
}

program::program(const command_line& line, const reading_result& first)
    : line_{line}
    , signals_{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}
    , passed_{take_passed_and_become_user(first)}
    , first_{first.configuration}
    , now_{first_}
    , errors_{open_error_log(now_.log)}
    , access_{open_access_log(now_.log, errors_)}
    , observer_{access_, *board_}
    , group_{make_group(now_, shortages_)}
    , listeners_{group_, observer_.hook()} {
    serve(now_);
}

void program::serve(const configuration& with) {
    const gateway_listener told{.report = report_gateway, .context = &errors_};
    auto made = std::make_shared<const sites>(with.sites, told);
    status_sources figures = sources(with, made);
    // An address may pass from [[listen]] to [status], and back. So all sockets are there before
    // one server accepts or ends.
    const bool moves_status = with.status != status_at_;
    address_sockets left;
    if (status_ && moves_status) {
        left.at = status_at_;
        left.sockets = value_or_throw(adopt_all(status_->duplicate_listeners()), "status");
    }
    listener_set::change next = listeners_.prepare(with, made, passed_, std::move(left));
    listening_sockets for_status;
    if (with.status && moves_status) for_status = open_status(with);

    // First, so that it takes no connection from a listener that follows it.
    if (moves_status) {
        status_.reset();
        status_at_.reset();
    }
    listeners_.commit(std::move(next));
    sites_ = std::move(made);
    board_->set_sources(std::move(figures));
    if (!moves_status && status_) status_->replace(board_, with.status_hosts);
    if (!moves_status || !with.status) return;
    status_.emplace(value_or_throw(
        status_server::adopt(group_, std::move(for_status), board_, with.status_hosts), "status"));
    status_at_ = with.status;
}

listening_sockets program::open_status(const configuration& with) {
    const std::string what = "cannot listen at " + with.status->to_string();
    listening_sockets sockets = value_or_throw(listeners_.copy_sockets(*with.status), what);
    if (sockets.empty()) sockets = value_or_throw(passed_.copy(*with.status), what);
    if (!sockets.empty()) return sockets;
    return value_or_throw(open_sockets(group_, *with.status, {}), what);
}

status_sources program::sources(const configuration& of,
                                const std::shared_ptr<const sites>& served) {
    status_sources made;
    made.servers = [this] {
        std::vector<server_figures> all;
        for (listener_set::figures& each : listeners_.all_figures()) {
            all.push_back({.address = each.address.to_string(),
                           .secure = each.secure,
                           .statistics = std::move(each.statistics)});
        }
        return all;
    };
    made.upstreams = [served] {
        std::vector<upstream_figures> all;
        for (site_backend& each : served->backends()) {
            all.push_back({.site = std::move(each.site),
                           .route = std::move(each.route),
                           .backend = std::move(each.status)});
        }
        return all;
    };
#if SIMPLENET_HTTPD_TLS
    std::vector<certificate_figures> certificates;
    for (const listener& each : of.listen) {
        if (!each.tls) continue;
        for (const certificate& file : each.tls->certificates) {
            // Several listeners may have it.
            const bool is_known =
                std::ranges::find(certificates, file.certificate, &certificate_figures::file) !=
                certificates.end();
            if (is_known) continue;
            const auto facts = facts_of(file.certificate);
            if (facts) certificates.push_back({file.certificate, facts->valid_until});
        }
    }
    made.certificates = [certificates = std::move(certificates)] { return certificates; };
#endif
    made.access = &access_;
    made.errors = &errors_;
    return made;
}

void program::announce() {
    tell_addresses();
    for (const served_address& each : told_)
        if (!each.is_status && line_.config.empty()) std::printf("%s\n", each.at.c_str());
    std::fflush(stdout);
    const process_figures figures = read_process_figures();
    // The library keeps a sixteenth for what requests open, and one for each loop of a listener.
    const std::uint64_t limit = figures.descriptor_limit;
    const std::uint64_t loops_of_all = listeners_.all_figures().size() * group_.size();
    const std::uint64_t kept = limit / 16 + std::min(limit / 4, loops_of_all);
    if (figures.descriptors + kept + least_descriptors > limit) {
        errors_.write(log_level::warning, "few file descriptors are left for connections",
                      {{"limit", figures.descriptor_limit}, {"used", figures.descriptors}});
    }
    errors_.write(log_level::info, "ready");
}

void program::tell_addresses() {
    std::vector<served_address> now;
    for (const listener_set::figures& each : listeners_.all_figures()) {
        const std::string_view scheme = each.secure ? "https://" : "http://";
        now.push_back(
            {.is_status = false, .at = std::string{scheme} + each.address.to_string() + '/'});
    }
    if (status_) {
        now.push_back(
            {.is_status = true, .at = "http://" + status_->local_endpoint().to_string() + '/'});
    }
    const auto is_in = [](const std::vector<served_address>& all, const served_address& one) {
        return std::ranges::find(all, one) != all.end();
    };
    for (const served_address& each : now) {
        if (is_in(told_, each)) continue;
        const log_field at{"at", std::string_view{each.at}};
        if (each.is_status) {
            errors_.write(log_level::info, "status", {at});
        } else {
            errors_.write(log_level::info, "serving", {at});
        }
    }
    for (const served_address& each : told_) {
        if (is_in(now, each)) continue;
        errors_.write(log_level::info, "no longer serving", {{"at", std::string_view{each.at}}});
    }
    told_ = std::move(now);
}

void program::act_on(int signal) {
    if (signal == SIGUSR1) {
        access_.reopen();
        errors_.reopen();
    } else if (signal == SIGUSR2) {
        group_.dump_tasks(std::cerr);
    }
}

void program::give_memory_back(crowd_watch& crowd) {
    std::size_t open = 0;
    for (const listener_set::figures& each : listeners_.all_figures())
        open += each.statistics.open;
    if (!crowd.has_crowd_left(open)) return;
    const std::uint64_t before = read_process_figures().resident_bytes;
    // free(3) gives back only the end of a heap, and a single block there keeps all below it. Loops
    // that need memory wait meanwhile.
    ::malloc_trim(0);
    errors_.write(log_level::info, "a crowd has left",
                  {{"connections", open},
                   {"resident_before", before},
                   {"resident", read_process_figures().resident_bytes}});
}

task<> program::watch_crowds() {
    constexpr std::chrono::seconds between_looks{5};
    crowd_watch crowd;
    while (const auto slept = co_await simplenet::async_sleep(between_looks)) {
        try {
            give_memory_back(crowd);
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): next time
        }
    }
}

task<> program::attend() {
    announce();
    simplenet::spawn(watch_crowds()); // ends with this loop
    notify_manager("READY=1");
    for (;;) {
        const result<int> number = co_await signals_.next();
        if (!number) co_return;
        switch (*number) {
        case SIGHUP:
            co_await reload();
            break;
        case SIGTERM:
        case SIGINT:
            co_return co_await end();
        default:
            act_on(*number);
        }
    }
}

// This loop has nothing else to do, so files are read on it.
task<> program::reload() {
    notify_reloading();
    try {
        const reading_result read = configure(line_);
        for (const problem& each : read.problems.sorted()) {
            const std::string where = place_of(each, line_.config);
            const bool is_error = each.severity == severity::error;
            errors_.write(is_error ? log_level::error : log_level::warning, "in the configuration",
                          {{"at", where}, {"why", std::string_view{each.text}}});
        }
        if (!read.problems.can_start()) throw std::runtime_error{"the configuration has errors"};
        change_to(read.configuration);
        co_await listeners_.ended_accepting();
        tell_addresses();
        errors_.write(log_level::info, "reloaded");
        board_->reloaded(true);
    } catch (const std::exception& error) {
        errors_.write(log_level::error, "not reloaded; the configuration before stays",
                      {{"why", std::string_view{error.what()}}});
        board_->reloaded(false);
    }
    notify_manager("READY=1");
}

void program::change_to(const configuration& next) {
    auto errors = value_or_throw(error_log::open_file(next.log.error), next.log.error);
    auto access = value_or_throw(access_log::open_file(next.log.access), next.log.access);
    serve(next);
    errors_.write_to(std::move(errors), next.log.level);
    access_.write_to(std::move(access), next.log.format);
    const bool is_same_user = next.user.has_value() == first_.user.has_value() &&
                              (!next.user || next.user->uid == first_.user->uid);
    if (next.workers != first_.workers || next.pin != first_.pin || !is_same_user) {
        errors_.write(log_level::warning,
                      "`workers`, `pin` and `user` change only when the program is restarted");
    }
    now_ = next;
}

task<> program::cut_at_next_signal() {
    for (;;) {
        const result<int> number = co_await signals_.next();
        if (!number) co_return; // with this loop
        switch (*number) {
        case SIGTERM:
        case SIGINT:
            co_return listeners_.cut();
        default: // not a reload of what ends
            act_on(*number);
        }
    }
}

task<> program::end() {
    notify_manager("STOPPING=1");
    board_->end();
    errors_.write(log_level::info, "ending");
    simplenet::spawn(cut_at_next_signal()); // ends with this loop
    const simplenet::shutdown_report report = co_await listeners_.shutdown(now_.grace);
    board_->set_sources({});
    status_.reset();
    // What comes from here on finds nothing to end, and must not look like a crash.
    for (const int each : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
        std::signal(each, SIG_IGN);
    errors_.write(log_level::info, "ended", {{"drained", report.drained}, {"cut", report.cut}});
}

} // namespace

int run_program(const command_line& line, const reading_result& first) {
    // A log may be a pipe. Sockets and files have flags of their own.
    std::signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    try {
        program whole{line, first};
        simplenet::run(whole.attend(),
                       {.backend = first.configuration.backend, .handle_signals = false});
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "simplenet-httpd: %s\n", error.what());
        return EXIT_FAILURE;
    }
}

} // namespace httpd
