#pragma once
// descriptor_limit: a shortage of descriptors for as long as the object lives.

#include "support/raw_peer.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace simplenet::v0::testing {

/// Limits the process to `spare` further descriptors.
class descriptor_limit {
public:
    explicit descriptor_limit(int spare = 0) {
        checked(::getrlimit(RLIMIT_NOFILE, &before_));
        set(spare);
    }
    descriptor_limit(const descriptor_limit&) = delete;
    descriptor_limit& operator=(const descriptor_limit&) = delete;
    ~descriptor_limit() { lift(); }

    void lift() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    void set(int spare) {
        // The limit applies to numbers: the lowest free ones are the spare ones. Several attempts,
        // because accept(2) in another thread takes a number before it finds that nobody waits.
        rlimit now = before_;
        for (int attempt = 0; attempt < 10; ++attempt) {
            now.rlim_cur = std::min(now.rlim_cur, static_cast<rlim_t>(next_number_behind(spare)));
            std::this_thread::yield();
        }
        checked(::setrlimit(RLIMIT_NOFILE, &now));
    }
    static int next_number_behind(int spare) {
        std::vector<unique_fd> taken;
        for (int each = 0; each <= spare; ++each)
            taken.emplace_back(checked(::dup(0)));
        return taken.back().get();
    }

    rlimit before_{};
};

} // namespace simplenet::v0::testing
