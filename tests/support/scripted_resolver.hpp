#pragma once
// scripted_resolver: replaces the resolver of the process. Lookups wait until the test answers.

#include "net/name_resolver.hpp"

#include <simplenet/ip/endpoint.hpp>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <netdb.h>

namespace simplenet::v0::testing {

/// Its threads are real, and block in their lookups like those of getaddrinfo(3).
class scripted_resolver {
public:
    explicit scripted_resolver(detail::name_resolver::limits limits = {})
        : resolver_{[this](const detail::sys::name_question& question) { return wait(question); },
                    limits} {}
    scripted_resolver(const scripted_resolver&) = delete;
    scripted_resolver& operator=(const scripted_resolver&) = delete;
    ~scripted_resolver() { give_up(); }

    /// Sets the addresses of `host` in this family, for present and future lookups.
    void answer(const std::string& host, address_family family,
                std::vector<std::string_view> addresses, bool reachable = true) {
        detail::sys::name_answer answer;
        for (const auto text : addresses)
            answer.endpoints.emplace_back(or_throw(ip_address::parse(text)), std::uint16_t{0});
        answer.reachable = reachable;
        if (addresses.empty()) answer.error = {EAI_NONAME, detail::sys::resolver_category()};
        set(host, family, std::move(answer));
    }
    void fail(const std::string& host, address_family family, int outcome, int error_number = 0) {
        detail::sys::name_answer answer;
        answer.error = detail::sys::resolver_error(outcome, error_number);
        set(host, family, std::move(answer));
    }
    /// Makes all present and future lookups fail.
    void give_up() {
        const std::lock_guard lock{guard_};
        over_ = true;
        changed_.notify_all();
    }

    /// Lookups that a thread has begun.
    [[nodiscard]] std::size_t begun() const {
        const std::lock_guard lock{guard_};
        return begun_.size();
    }
    [[nodiscard]] std::vector<detail::sys::name_question> questions() const {
        const std::lock_guard lock{guard_};
        return begun_;
    }
    [[nodiscard]] detail::name_resolver& operator*() { return resolver_; }
    [[nodiscard]] detail::name_resolver* operator->() { return &resolver_; }

private:
    using key = std::pair<std::string, address_family>;

    void set(const std::string& host, address_family family, detail::sys::name_answer answer) {
        const std::lock_guard lock{guard_};
        answers_[{host, family}] = std::move(answer);
        changed_.notify_all();
    }
    detail::sys::name_answer wait(const detail::sys::name_question& question) {
        std::unique_lock lock{guard_};
        begun_.push_back(question);
        const key asked{question.host, question.family};
        changed_.wait(lock, [&] { return over_ || answers_.contains(asked); });
        if (const auto known = answers_.find(asked); known != answers_.end()) return known->second;
        detail::sys::name_answer nothing;
        nothing.error = {EAI_AGAIN, detail::sys::resolver_category()};
        return nothing;
    }

    mutable std::mutex guard_;
    std::condition_variable changed_;
    std::map<key, detail::sys::name_answer> answers_;
    std::vector<detail::sys::name_question> begun_;
    bool over_ = false;
    detail::name_resolver resolver_; // its threads use the rest: destroyed first
    detail::name_resolver::replacement replaces_{resolver_};
};

} // namespace simplenet::v0::testing
