// What handlers call: the request and the response are faces of their exchange.

#include "http/codec/target.hpp"
#include "http/server/exchange.hpp"

#include <simplenet/http/path.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>

namespace simplenet::v0::http {

std::string_view request::parameter(std::string_view name) const noexcept {
    return exchange_->parameter(name);
}
endpoint request::peer() const noexcept {
    return exchange_->peer();
}
endpoint request::connection_peer() const noexcept {
    return exchange_->info().peer;
}
endpoint request::connection_local() const noexcept {
    return exchange_->info().local;
}
bool request::secure() const noexcept {
    return exchange_->secure();
}
std::optional<std::uint64_t> request::content_length() const noexcept {
    return exchange_->content_length();
}
task<result<std::size_t>> request::read_some(mutable_buffer into) {
    return exchange_->read_some(into);
}
task<result<std::string>> request::read_all(std::size_t limit) {
    return exchange_->read_all(limit);
}
void request::rewrite(std::string_view path) {
    exchange_->rewrite(path);
}
void request::limit_body(std::uint64_t bytes) noexcept {
    exchange_->limit_body(bytes);
}
void request::set_user(std::string_view name) {
    exchange_->set_user(name);
}
void request::set_peer(const endpoint& client) noexcept {
    exchange_->set_peer(client);
}
void request::set_secure(bool secure) noexcept {
    exchange_->set_secure(secure);
}

response& response::status(unsigned code) noexcept {
    exchange_->set_status(code);
    return *this;
}
response& response::set(std::string_view name, std::string_view value) {
    exchange_->set_field(name, value, true);
    return *this;
}
response& response::add(std::string_view name, std::string_view value) {
    exchange_->set_field(name, value, false);
    return *this;
}
detail::sending response::send(std::string_view content_type, const_buffer body) {
    return detail::sending{exchange_->send(content_type, body)};
}
task<result<std::size_t>> response::write_some(const_buffer from) {
    return exchange_->write_one(from);
}
task<result<std::size_t>> response::write_some(std::span<const const_buffer> from) {
    return exchange_->write_some(from);
}
task<result<>> response::send_file(int fd, std::uint64_t size, file_options options) {
    return exchange_->send_file(fd, size, options);
}
task<result<>> response::flush() {
    return exchange_->flush();
}
bool response::head_sent() const noexcept {
    return exchange_->head_sent();
}
unsigned response::status() const noexcept {
    return exchange_->status();
}
std::optional<std::string_view> response::find(std::string_view name) const noexcept {
    return exchange_->find_field(name);
}
void response::reset() noexcept {
    exchange_->reset_answer();
}
response& response::compression(const compression_options& with) noexcept {
    exchange_->set_compression(with);
    return *this;
}
task<result<any_stream>> response::upgrade(std::string_view protocol) {
    return exchange_->upgrade(protocol);
}

std::string encode_path(std::string_view path) {
    return detail::percent_encode_path(path);
}

} // namespace simplenet::v0::http
