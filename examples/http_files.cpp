// Serves the files of a directory.
// Lesson: one route does it, with ranges, conditions, precompressed files and a cache; nothing
// outside of the directory is served.

#include "http_serving.hpp"

#include <simplenet/http.hpp>

#include <string>
#include <system_error>
#include <utility>

using namespace simplenet;

int main(int argc, char** argv) {
    const std::string usage =
        std::string{"http_files DIRECTORY [--listing]"}.append(example::server_usage);
    example::arguments given{argc, argv, usage};
    http::static_options options;
    options.listing = given.flag("--listing");
    const auto server = example::take_server_options(given);
    const auto directory = given.next("DIRECTORY");
    given.finish();

    http::router routes;
    try {
        //! [files]
        options.cache_control = "max-age=60";
        routes.files("/", directory, options); // opens the directory
        //! [files]
    } catch (const std::system_error& error) {
        return example::failed("cannot open " + std::string{directory}, error.code());
    }
    return example::serve_http(server, std::move(routes));
}
