#pragma once
// Media types by the extension of a file's name. Layer http, private.

#include "http/text_hash.hpp"

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace simplenet::v0::http::detail {

/// The types that the web is made of, and those of a mime.types file. Unchanged once constructed:
/// any thread may look up.
class media_type_table {
public:
    /// @param mime_types  The text of a mime.types file: a type and its extensions on each line.
    ///                    What is built in wins, so that a page works alike on every machine; of
    ///                    two lines with one extension the first wins. Lines without a well-formed
    ///                    type are skipped: the type becomes the value of a field.
    explicit media_type_table(std::string_view mime_types = {});

    /// The value for Content-Type, with a charset for text. Empty if the extension is unknown.
    /// Case is ignored. Does not allocate.
    ///
    /// @param extension  Without its dot.
    [[nodiscard]] std::string_view find(std::string_view extension) const noexcept;

private:
    void add(std::string_view extension, std::string_view type);
    void read_line(std::string_view line);

    /// Extensions in lower case.
    std::unordered_map<std::string, std::string, text_hash, std::equal_to<>> types_;
};

/// The value of Content-Type for a file: by the last extension of its name, with the table of the
/// system (/etc/mime.types, if there is one). "application/octet-stream" for all others, and for
/// names whose only dot is their first byte. Valid until the program ends.
///
/// The first call reads the file, and blocks: a server makes it before it serves. Later ones take
/// constant time and do not allocate. Any thread.
[[nodiscard]] std::string_view media_type_of(std::string_view name);

} // namespace simplenet::v0::http::detail
