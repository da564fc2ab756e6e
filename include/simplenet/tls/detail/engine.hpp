#pragma once
// engine: TLS of one connection without I/O. Layer tls.
// Ciphertext goes in and comes out through memory; the stream around it moves that memory.
// OpenSSL is called in engine.cpp only, and never waits.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/tls/connection_info.hpp>
#include <simplenet/tls/context.hpp>
#include <simplenet/tls/errc.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

struct ssl_st; // of OpenSSL

namespace simplenet::v0::tls::detail {
// Internal: not exported, because they are first declared here.
class material;
struct engine_access;
} // namespace simplenet::v0::tls::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::tls {

/// Settings of one stream. Views, which the stream copies.
struct stream_options {
    /// On a client: the name that is verified, and sent as SNI unless it is an address.
    std::string_view server_name = {};
    /// False: the name is not verified, and `server_name` may be empty. The chain is still
    /// verified.
    bool verify_name = true;
};

namespace detail {

/// TLS of one connection. Loop thread only.
///
/// Invariant: what it produces is in `output()` until sent() takes it, in order. What it is given
/// by set_input() is borrowed until has_input() is false.
class engine {
public:
    enum class progress : std::uint8_t { finished, needs_input, lacks_memory, failed };

    /// Throws std::bad_alloc. A bad configuration fails the handshake.
    engine(const context& with, const stream_options& options);
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    ~engine();

    // --- the handshake ---

    [[nodiscard]] bool is_ready() const noexcept { return ready_; }
    /// True on a server before the client's first byte. Wait then without calling advance():
    /// OpenSSL would allocate 33 KiB for a client that may stay silent.
    [[nodiscard]] bool awaits_hello() const noexcept;
    /// As far as the input allows. @pre not is_ready().
    [[nodiscard]] progress advance() noexcept;

    // --- application data; is_ready() ---

    /// All that the input has and `into` takes. `operation_would_block`: more input is needed.
    [[nodiscard]] result<std::size_t> decrypt(mutable_buffer into) noexcept;
    /// Whether decrypt() would give something, or fail, without more input.
    [[nodiscard]] bool has_decrypted() noexcept;
    /// As decrypt(), into memory of the lease. Best after has_decrypted(), when the size is known.
    [[nodiscard]] result<received> take() noexcept;
    /// Sends `output` and then `record`, without waiting. Returns how many bytes have left.
    using sender = std::size_t(engine& of, const_buffer output, const_buffer record) noexcept;
    /// Seals as much of `from` as one send should carry, and returns how many bytes that is. If
    /// `send` is not null, it gets the output and the last record; what it does not send becomes
    /// output. Throws std::bad_alloc; nothing was sealed then.
    [[nodiscard]] result<std::size_t> encrypt(std::span<const const_buffer> from, sender* send);
    /// Whether so many messages without data, such as KeyUpdates, have come since begin_turn() that
    /// others should have their turn. decrypt() then returns after one record of data.
    [[nodiscard]] bool has_used_its_turn() const noexcept {
        return messages_in_turn_ >= most_in_turn;
    }
    void begin_turn() noexcept { messages_in_turn_ = 0; }
    /// Decrypted bytes that the last decrypt() left.
    [[nodiscard]] std::size_t pending() const noexcept;

    // --- the end ---

    /// Puts a close_notify into the output, once; nothing follows it, not even an alert. After
    /// `not_enough_memory` it may be called again.
    [[nodiscard]] result<> finish() noexcept;
    /// The transport has ended: no more input will come.
    void input_ended() noexcept;
    /// The sticky failure of both directions; zero: none.
    [[nodiscard]] std::error_code failure() const noexcept { return failure_; }
    [[nodiscard]] std::string error_detail() const;
    [[nodiscard]] const connection_info& info() const;

    // --- ciphertext ---

    [[nodiscard]] bool has_input() const noexcept { return input_size_ != 0; }
    void set_input(const std::byte* data, std::size_t size) noexcept {
        if (greeted_ != 2) [[unlikely]]
            greet(data, size);
        input_ = data;
        input_size_ = size;
    }
    [[nodiscard]] bool has_output() const noexcept { return output_begin_ != output_end_; }
    [[nodiscard]] std::size_t output_size() const noexcept {
        return output_end_ - output_begin_ + late_size_;
    }
    /// Whether the output has a part of the handshake that the peer waits for.
    [[nodiscard]] bool owes_handshake() const noexcept { return owed_ != 0; }
    [[nodiscard]] const_buffer output() const noexcept {
        return {output_memory_.data() + output_begin_, output_end_ - output_begin_};
    }
    /// While this exists, output() stays where it is: a write uses it.
    class lent_output {
    public:
        explicit lent_output(engine& of) noexcept
            : of_{of} {
            of_.lent_ = true;
        }
        lent_output(const lent_output&) = delete;
        lent_output& operator=(const lent_output&) = delete;
        ~lent_output() { of_.lent_ = false; }
        [[nodiscard]] const_buffer bytes() const noexcept { return of_.output(); }

    private:
        engine& of_;
    };
    [[nodiscard]] bool is_output_lent() const noexcept { return lent_; }
    void sent(std::size_t count) noexcept {
        output_begin_ += count;
        owed_ -= std::min(owed_, count);
        if (output_begin_ == output_end_) output_ended();
    }

private:
    friend engine_access;

    // Four KeyUpdates with their answers cost about as much as a step of a handshake.
    static constexpr unsigned most_in_turn = 4;

    void set_name(const stream_options& options);
    void completed() noexcept;
    [[nodiscard]] bool accepts_resumption() const noexcept;
    /// Looks at the first two bytes of the connection.
    void greet(const std::byte* data, std::size_t size) noexcept;
    void failed() noexcept;
    void fail_with(errc code, const char* why) noexcept;
    [[nodiscard]] bool is_abused() noexcept;
    [[nodiscard]] bool may_have_data() const noexcept;
    /// Whether append() has to add to `late_memory_`: the output is lent, or earlier bytes are
    /// there.
    [[nodiscard]] bool comes_late() const noexcept { return lent_ || late_size_ != 0; }
    void reserve(std::size_t more);
    [[nodiscard]] bool append(const void* data, std::size_t size) noexcept;
    void output_ended() noexcept;

    std::shared_ptr<const material> material_; // what `ssl_` uses
    ssl_st* ssl_ = nullptr;
    const std::byte* input_ = nullptr; // borrowed
    std::size_t input_size_ = 0;
    scratch output_memory_;
    std::size_t output_begin_ = 0;
    std::size_t output_end_ = 0;
    std::size_t owed_ = 0; // bytes up to the end of the handshake, for which the peer waits
    scratch late_memory_;  // what comes behind the output since it was lent
    std::size_t late_size_ = 0;
    sender* send_ = nullptr;  // while the last record of a write is sealed
    std::string session_key_; // of a client; empty: no resumption
    std::error_code failure_;
    std::unique_ptr<std::string> detail_;
    mutable std::unique_ptr<connection_info> info_;
    unsigned messages_ = 0;         // of the peer since the last application data
    unsigned messages_in_turn_ = 0; // of the peer since begin_turn()
    bool lent_ = false;             // see lent_output
    bool ready_ = false;
    std::uint8_t greeted_ = 0;  // how many of the peer's first two bytes have arrived
    bool heard_ = false;        // they begin a handshake or an alert of a version 3.x: TLS
    bool ended_ = false;        // the peer has sent close_notify
    bool finished_ = false;     // we have
    bool lacks_memory_ = false; // the output could not grow
    bool refused_ = false;      // a renegotiation
};

} // namespace detail
} // namespace simplenet::v0::tls

#pragma GCC visibility pop
