#include "tls/library_context.hpp"

#include <openssl/crypto.h>

#include <mutex>
#include <new>
#include <vector>

namespace simplenet::v0::tls::detail {

namespace {

/// Contexts that were returned. Never destroyed: a static tls::context may end after everything
/// else.
struct idle_contexts {
    std::mutex mutex;
    std::vector<OSSL_LIB_CTX*> contexts;
    std::size_t all = 0;
};

idle_contexts& idle() {
    static auto* const instance = new idle_contexts;
    return *instance;
}

/// OpenSSL would free its state in a handler of atexit(3), and streams with static storage duration
/// would use it afterwards. Has an effect only if the program has not used OpenSSL before.
void keep_after_exit() noexcept {
    static const int done = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    static_cast<void>(done);
}

} // namespace

library_context::library_context() {
    keep_after_exit();
    idle_contexts& all = idle();
    const std::lock_guard locked{all.mutex};
    if (!all.contexts.empty()) {
        context_ = all.contexts.back();
        all.contexts.pop_back();
        return;
    }
    all.contexts.reserve(all.all + 1); // so that the destructor cannot fail
    context_ = OSSL_LIB_CTX_new();
    if (context_ == nullptr) throw std::bad_alloc{};
    ++all.all;
}

library_context::~library_context() {
    idle_contexts& all = idle();
    const std::lock_guard locked{all.mutex};
    all.contexts.push_back(context_);
}

} // namespace simplenet::v0::tls::detail
