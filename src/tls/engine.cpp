#include <simplenet/tls/detail/engine.hpp>

#include "tls/context_core.hpp"
#include "tls/engine_access.hpp"
#include "tls/failures.hpp"
#include "tls/openssl.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/ip/ip_address.hpp>
#include <simplenet/tls/errc.hpp>

#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace simplenet::v0::tls::detail {

namespace {

constexpr std::size_t most_of_a_record = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t most_of_a_send = 4 * most_of_a_record;
// Header, explicit nonce, content type and tag, rounded up.
constexpr std::size_t overhead_of_a_record = 64;
// A block of scratch memory.
constexpr std::size_t most_of_a_lease = std::size_t{32} * 1024 - simplenet::detail::lease_overhead;
// A pending KeyUpdate leaves with the next record.
constexpr std::size_t room_for_messages = 256;
// Messages of the peer in a row that carry no data for the application. Each costs a derivation of
// keys or more; a server sends a few tickets, and everything else is rare.
constexpr unsigned most_messages = 32;
constexpr const char* verify_peer_refused = "client_config::verify_peer refused";

/// Labels of letters, digits, hyphens and underscores. OpenSSL would take a leading dot for "every
/// host below" (X509_check_host(3)).
bool is_host_name(std::string_view name) noexcept {
    if (name.size() > TLSEXT_MAXLEN_host_name) return false;
    char before = '.';
    for (const char each : name) {
        const bool is_letter = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                               (each >= '0' && each <= '9') || each == '-' || each == '_';
        if (!is_letter && (each != '.' || before == '.')) return false;
        before = each;
    }
    return before != '.';
}

/// Whether a read has met a close_notify. OpenSSL 3.5 reports SSL_ERROR_SYSCALL if a user_canceled
/// came before it, which RFC 8446, section 6.1, allows. After other alerts, an error is in the
/// queue.
bool is_end(const SSL* connection, int why) noexcept {
    return why == SSL_ERROR_ZERO_RETURN ||
           (why == SSL_ERROR_SYSCALL &&
            (SSL_get_shutdown(connection) & SSL_RECEIVED_SHUTDOWN) != 0);
}

/// Owned by nobody: it lives as long as the process. Throws std::bad_alloc; the next call tries
/// again.
BIO_METHOD* memory_method() {
    static BIO_METHOD* const method = [] {
        BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "engine");
        if (made == nullptr) throw std::bad_alloc{};
        BIO_meth_set_read(made, &engine_access::read);
        BIO_meth_set_write(made, &engine_access::write);
        BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long {
            return command == BIO_CTRL_FLUSH ? 1 : 0;
        });
        return made;
    }();
    return method;
}

} // namespace

// --- what OpenSSL calls --------------------------------------------------------------------------

int engine_access::read(BIO* bio, char* into, int size) noexcept {
    engine& self = *static_cast<engine*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (self.input_size_ == 0 || self.messages_ > most_messages || self.refused_) {
        BIO_set_retry_read(bio);
        return -1;
    }
    const std::size_t count = std::min(self.input_size_, static_cast<std::size_t>(size));
    std::memcpy(into, self.input_, count);
    self.input_ += count;
    self.input_size_ -= count;
    return static_cast<int>(count);
}

int engine_access::write(BIO* bio, const char* from, int size) noexcept {
    engine& self = *static_cast<engine*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    // Nothing follows a close_notify (RFC 8446, section 6.1). OpenSSL would still answer
    // KeyUpdates.
    if (self.finished_) return size;
    const_buffer rest{from, static_cast<std::size_t>(size)};
    if (self.send_ != nullptr && !self.comes_late()) {
        const std::size_t before = self.output().size();
        const std::size_t count = self.send_(self, self.output(), rest);
        self.output_begin_ += std::min(count, before); // not sent(): the rest needs the memory
        if (count > before) rest = rest.subspan(count - before);
        if (rest.empty()) return size;
    }
    if (self.append(rest.data(), rest.size())) return size;
    self.lacks_memory_ = true;
    BIO_set_retry_write(bio);
    return -1;
}

void engine_access::saw_message(int sent, int, int type, const void* data, std::size_t size,
                                SSL* connection, void*) noexcept {
    // It is told of the header of each record, too.
    if (type != SSL3_RT_ALERT && type != SSL3_RT_HANDSHAKE) [[likely]]
        return;
    engine& self = of(connection).self;
    const auto* const bytes = static_cast<const unsigned char*>(data);
    if (type == SSL3_RT_ALERT && size == 2) {
        if (sent == 1 && bytes[1] == SSL_AD_NO_RENEGOTIATION) self.refused_ = true;
        if (sent == 0) ++self.messages_;
    } else if (type == SSL3_RT_HANDSHAKE && sent == 0 && self.ready_) {
        ++self.messages_;
        ++self.messages_in_turn_;
    }
}

void engine_access::keep_session(session_ptr session) const noexcept {
    if (self.session_key_.empty()) return;
    self.material_->state().sessions->put(self.session_key_, std::move(session));
}

bool engine_access::accepts(X509* certificate, int verification, const settings& config) noexcept {
    X509_up_ref(certificate);
    return config.verify_peer(peer_certificate{certificate}, verification_error(verification),
                              config.verify_data);
}

// --- life ----------------------------------------------------------------------------------------

engine::engine(const context& with, const stream_options& options)
    : material_{with.core().current()} {
    const settings& config = material_->config();
    ERR_clear_error();
    bio_ptr bio{BIO_new(memory_method())};
    std::unique_ptr<SSL, freed_by<SSL_free>> made{SSL_new(material_->standard())};
    if (!bio || !made) throw std::bad_alloc{};
    BIO_set_data(bio.get(), this);
    BIO_set_init(bio.get(), 1);
    SSL_set_bio(made.get(), bio.get(), bio.get()); // owns it twice
    static_cast<void>(bio.release());
    SSL_set_msg_callback(made.get(), &engine_access::saw_message);
    ssl_ = made.get();
    if (config.plays == side::server) {
        SSL_set_accept_state(ssl_);
    } else {
        SSL_set_connect_state(ssl_);
        set_name(options);
    }
    static_cast<void>(made.release());
}

engine::~engine() {
    // Otherwise OpenSSL would take a connection without an exchange of close_notify for a failed
    // one, and its session could not be resumed.
    if (!failure_) SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl_);
}

void engine::set_name(const stream_options& options) {
    const settings& config = material_->config();
    std::string name{options.server_name};
    if (!name.empty() && name.back() == '.') name.pop_back(); // RFC 6066, section 3
    const bool verifies_name = config.verifies && options.verify_name;
    if (name.empty()) {
        if (verifies_name)
            fail_with(errc::bad_configuration, "stream_options::server_name is empty");
        return;
    }
    X509_VERIFY_PARAM* const checks = SSL_get0_param(ssl_);
    const bool is_address = ip_address::parse(name).has_value();
    if (!is_address && !is_host_name(name)) {
        return fail_with(errc::bad_configuration, "stream_options::server_name is no host name");
    }
    if (!is_address && SSL_set_tlsext_host_name(ssl_, name.c_str()) != 1) throw std::bad_alloc{};
    if (options.verify_name) {
        // The subject's common name is no name of a host (RFC 9525, section 2).
        X509_VERIFY_PARAM_set_hostflags(checks, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        const int set = is_address ? X509_VERIFY_PARAM_set1_ip_asc(checks, name.c_str())
                                   : X509_VERIFY_PARAM_set1_host(checks, name.data(), name.size());
        if (set != 1) return fail_with(errc::bad_configuration, "stream_options::server_name");
    }
    session_key_ = name + (options.verify_name ? '\0' : '\1');
    session_key_ += material_->digest();
    if (const session_ptr known = material_->state().sessions->take(session_key_)) {
        SSL_set_session(ssl_, known.get());
    }
}

// --- failures ------------------------------------------------------------------------------------

void engine::fail_with(errc code, const char* why) noexcept {
    failure_ = make_error_code(code);
    try {
        detail_ = std::make_unique<std::string>(why);
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): the code remains
    }
}

void engine::failed() noexcept {
    const unsigned long entry = ERR_peek_error();
    failure_ = connection_error(entry, ready_, heard_, SSL_get_verify_result(ssl_));
    const char* reason = ERR_reason_error_string(entry);
    if (ERR_GET_REASON(entry) == SSL_R_CERTIFICATE_VERIFY_FAILED &&
        ERR_GET_LIB(entry) == ERR_LIB_SSL) {
        const long found = SSL_get_verify_result(ssl_);
        reason = found == X509_V_ERR_APPLICATION_VERIFICATION
                     ? verify_peer_refused
                     : X509_verify_cert_error_string(found);
    }
    try {
        if (reason != nullptr) detail_ = std::make_unique<std::string>(reason);
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): the code remains
    }
    ERR_clear_error();
}

bool engine::is_abused() noexcept {
    if (refused_) {
        fail_with(errc::renegotiation_refused, "the peer asked for a renegotiation");
    } else if (messages_ > most_messages) {
        fail_with(errc::record_invalid, "the peer sends many messages without data");
    }
    return static_cast<bool>(failure_);
}

void engine::input_ended() noexcept {
    if (failure_ || ended_) return;
    fail_with(errc::truncated, "the transport ended without close_notify");
}

std::string engine::error_detail() const {
    return detail_ ? *detail_ : std::string{};
}

// --- the handshake -------------------------------------------------------------------------------

bool engine::awaits_hello() const noexcept {
    return !failure_ && !has_input() && SSL_is_server(ssl_) == 1 && SSL_in_before(ssl_) == 1;
}

engine::progress engine::advance() noexcept {
    if (failure_) return progress::failed;
    lacks_memory_ = false;
    forget_errors();
    const int made = SSL_do_handshake(ssl_);
    if (made == 1) {
        completed();
        return failure_ ? progress::failed : progress::finished;
    }
    switch (SSL_get_error(ssl_, made)) {
    case SSL_ERROR_WANT_READ:
        return is_abused() ? progress::failed : progress::needs_input;
    case SSL_ERROR_WANT_WRITE:
        return progress::lacks_memory;
    default:
        failed();
        return progress::failed;
    }
}

void engine::completed() noexcept {
    if (!accepts_resumption()) {
        // Our Finished is in the output: the server must not take the connection for complete.
        output_ended();
        return fail_with(errc::certificate_invalid, verify_peer_refused);
    }
    ready_ = true;
    messages_ = 0;
    // What a server of TLS 1.3 sends last are tickets, which nobody waits for.
    const bool are_tickets = SSL_is_server(ssl_) == 1 && SSL_version(ssl_) == TLS1_3_VERSION;
    owed_ = are_tickets ? 0 : output_size();
}

/// OpenSSL asks about the peer of a full handshake only, see verify_chain().
bool engine::accepts_resumption() const noexcept {
    const settings& config = material_->config();
    if (config.verify_peer == nullptr || SSL_session_reused(ssl_) != 1) return true;
    X509* const peer = SSL_get0_peer_certificate(ssl_);
    return peer != nullptr &&
           engine_access::accepts(peer, static_cast<int>(SSL_get_verify_result(ssl_)), config);
}

// --- application data ----------------------------------------------------------------------------

result<std::size_t> engine::decrypt(mutable_buffer into) noexcept {
    std::size_t total = 0;
    while (!failure_ && !ended_ && total < into.size() && may_have_data()) {
        std::size_t count = 0;
        forget_errors();
        const int made = SSL_read_ex(ssl_, into.data() + total, into.size() - total, &count);
        if (made == 1) {
            total += count;
            messages_ = 0;
            if (has_used_its_turn()) break;
            continue;
        }
        const int why = SSL_get_error(ssl_, made);
        if (is_abused()) break;
        if (why == SSL_ERROR_WANT_READ) break;
        if (is_end(ssl_, why)) {
            ended_ = true;
        } else if (why == SSL_ERROR_WANT_WRITE) {
            if (total == 0) return fail(std::errc::not_enough_memory);
            break;
        } else {
            failed();
        }
    }
    if (total != 0) return total;
    if (failure_) return fail(failure_);
    if (ended_) return fail(simplenet::errc::end_of_stream);
    return fail(std::errc::operation_would_block);
}

bool engine::may_have_data() const noexcept {
    return input_size_ != 0 || SSL_pending(ssl_) != 0;
}

bool engine::has_decrypted() noexcept {
    if (failure_ || ended_ || SSL_pending(ssl_) != 0) return true;
    if (input_size_ == 0) return false;
    std::byte peeked{};
    std::size_t count = 0;
    forget_errors();
    const int made = SSL_peek_ex(ssl_, &peeked, 1, &count);
    if (made == 1) {
        messages_ = 0;
        return true;
    }
    const int why = SSL_get_error(ssl_, made);
    if (is_abused() || why == SSL_ERROR_WANT_WRITE) return true;
    if (why == SSL_ERROR_WANT_READ) return false;
    if (is_end(ssl_, why)) {
        ended_ = true;
    } else {
        failed();
    }
    return true;
}

std::size_t engine::pending() const noexcept {
    return static_cast<std::size_t>(SSL_pending(ssl_));
}

result<received> engine::take() noexcept {
    // Ciphertext is longer than what is in it.
    const std::size_t most = std::min(pending() + input_size_, most_of_a_lease);
    const std::size_t size = std::max<std::size_t>(most, 1);
    std::byte* const memory = simplenet::detail::allocate_lease(size);
    if (memory == nullptr) return fail(std::errc::not_enough_memory);
    received taken{memory, size};
    const result<std::size_t> count = decrypt({memory, size});
    if (!count) return fail(count);
    if (*count < size) return taken.split(*count);
    return taken;
}

result<std::size_t> engine::encrypt(std::span<const const_buffer> from, sender* send) {
    if (failure_) return fail(failure_);
    if (finished_) return fail(std::errc::broken_pipe);
    std::size_t wanted = 0;
    for (const const_buffer& each : from)
        wanted += std::min(each.size(), most_of_a_send - wanted);
    if (wanted == 0) return 0;
    const std::size_t records = wanted / most_of_a_record + from.size() + 1;
    reserve(wanted + std::min<std::size_t>(records, 8) * overhead_of_a_record + room_for_messages);

    scratch gathered; // before anything is sealed, because this may throw
    if (from.size() > 1) gathered = scratch::borrow(std::min(wanted, most_of_a_record));

    forget_errors();
    std::size_t total = 0;
    std::size_t filled = 0;
    const auto seal = [&](const_buffer data) {
        std::size_t count = 0;
        const int made = SSL_write_ex(ssl_, data.data(), data.size(), &count);
        if (made == 1) return true;
        failed();
        return false;
    };
    const auto seal_last = [&](const_buffer data) {
        const std::size_t before = (data.size() - 1) / most_of_a_record * most_of_a_record;
        if (before != 0 && !seal(data.first(before))) return false;
        send_ = send;
        const bool made = seal(data.subspan(before));
        send_ = nullptr;
        if (!has_output()) output_ended(); // the memory is not needed
        return made;
    };
    for (const const_buffer& each : from) {
        const_buffer rest = each.first(std::min(each.size(), wanted - total));
        total += rest.size();
        if (filled == 0) { // full records directly from the caller's memory
            if (total == wanted) {
                if (!rest.empty() && !seal_last(rest)) return fail(failure_);
                break;
            }
            const const_buffer full = rest.first(rest.size() - rest.size() % most_of_a_record);
            if (!full.empty() && !seal(full)) return fail(failure_);
            rest = rest.subspan(full.size());
        }
        while (!rest.empty()) {
            const std::size_t part = std::min(rest.size(), gathered.size() - filled);
            std::memcpy(gathered.data() + filled, rest.data(), part);
            filled += part;
            rest = rest.subspan(part);
            if (filled == gathered.size()) {
                if (!seal({gathered.data(), std::exchange(filled, 0)})) return fail(failure_);
            }
        }
        if (total == wanted) break;
    }
    if (filled != 0 && !seal_last({gathered.data(), filled})) return fail(failure_);
    return total;
}

result<> engine::finish() noexcept {
    if (failure_) return fail(failure_);
    if (finished_) return {};
    ERR_clear_error();
    finished_ = SSL_shutdown(ssl_) >= 0;
    if (finished_) return {};
    ERR_clear_error();
    return fail(std::errc::not_enough_memory);
}

// --- output --------------------------------------------------------------------------------------

void engine::reserve(std::size_t more) {
    const bool late = comes_late();
    scratch& to = late ? late_memory_ : output_memory_;
    const std::size_t begin = late ? 0 : output_begin_;
    const std::size_t used = (late ? late_size_ : output_end_) - begin;
    if (to.size() - begin >= used + more) return;
    scratch larger = scratch::borrow(std::max<std::size_t>(used + more, 1024));
    if (used != 0) std::memcpy(larger.data(), to.data() + begin, used);
    to = std::move(larger);
    if (!late) {
        output_begin_ = 0;
        output_end_ = used;
    }
}

bool engine::append(const void* data, std::size_t size) noexcept {
    try {
        reserve(size);
    } catch (const std::bad_alloc&) {
        return false;
    }
    const bool late = comes_late();
    scratch& to = late ? late_memory_ : output_memory_;
    std::size_t& end = late ? late_size_ : output_end_;
    std::memcpy(to.data() + end, data, size);
    end += size;
    return true;
}

void engine::greet(const std::byte* data, std::size_t size) noexcept {
    for (; greeted_ != 2 && size != 0; ++greeted_, ++data, --size) {
        const bool fits = greeted_ == 0 ? *data == std::byte{SSL3_RT_HANDSHAKE} ||
                                              *data == std::byte{SSL3_RT_ALERT}
                                        : *data == std::byte{SSL3_VERSION_MAJOR};
        heard_ = fits && (greeted_ == 0 || heard_);
    }
}

void engine::output_ended() noexcept {
    output_memory_ = std::move(late_memory_);
    output_begin_ = 0;
    output_end_ = std::exchange(late_size_, 0);
}

// --- what was agreed on --------------------------------------------------------------------------

const connection_info& engine::info() const {
    SIMPLENET_EXPECTS(ready_, "info() before the handshake is complete");
    if (info_) return *info_;
    auto made = std::make_unique<connection_info>();
    made->version = SSL_version(ssl_) == TLS1_3_VERSION ? version::tls_1_3 : version::tls_1_2;
    made->cipher = SSL_get_cipher_name(ssl_);
    const unsigned char* protocol = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(ssl_, &protocol, &size);
    made->alpn.assign(reinterpret_cast<const char*>(protocol), size);
    if (const char* name = SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name)) {
        made->server_name = name;
    }
    made->resumed = SSL_session_reused(ssl_) == 1;
    if (X509* const peer = SSL_get1_peer_certificate(ssl_)) {
        made->peer_certificate.emplace(peer);
        made->verification = verification_error(SSL_get_verify_result(ssl_));
    }
    info_ = std::move(made);
    return *info_;
}

} // namespace simplenet::v0::tls::detail
