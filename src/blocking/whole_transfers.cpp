#include <simplenet/blocking/whole_transfers.hpp>

#include "socket/streams.hpp"

#include <simplenet/blocking/local_stream.hpp>
#include <simplenet/blocking/tcp_stream.hpp>
#include <simplenet/socket/detail/socket_access.hpp>

#include <expected>

namespace simplenet::v0::blocking {

namespace streams = detail::streams;

template <class Self>
transfer_result whole_transfers<Self>::read_exact(mutable_buffer into) noexcept {
    auto& self = static_cast<Self&>(*this);
    transfer_result read = streams::read_exact(self.native_handle(), into);
    if (!read) read.error().code = detail::socket_access::read_failure(self, read.error().code);
    return read;
}

template <class Self>
transfer_result whole_transfers<Self>::write_all(const_buffer from,
                                                 write_options options) noexcept {
    return streams::write_all(static_cast<Self&>(*this).native_handle(), from, options);
}

template <class Self>
transfer_result whole_transfers<Self>::write_all(std::span<const const_buffer> from,
                                                 write_options options) noexcept {
    return streams::write_all(static_cast<Self&>(*this).native_handle(), from, options);
}

template class whole_transfers<local_stream>;
template class whole_transfers<tcp_stream>;

} // namespace simplenet::v0::blocking
