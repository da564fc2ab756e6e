#include "httpd/serve/error_answer.hpp"

#include <simplenet/http/status.hpp>

#include <string>

namespace httpd {

simplenet::task<simplenet::result<>> send_error(unsigned status,
                                                simplenet::http::response& answer) {
    const std::string title =
        std::to_string(status) + ' ' + std::string{simplenet::http::reason_of(status)};
    const std::string page =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
        title +
        "</title>\n<style>:root { color-scheme: light dark; font-family: "
        "system-ui, sans-serif; }</style>\n</head>\n<body>\n<h1>" +
        title + "</h1>\n</body>\n</html>\n";
    co_return co_await answer.status(status).send("text/html; charset=utf-8", page);
}

} // namespace httpd
