#include "httpd/config/command_line.hpp"
#include "httpd/config/documents.hpp"
#include "support/temporary_directory.hpp"

#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace {

using namespace httpd;
using simplenet::endpoint;
using ::testing::HasSubstr;
using ::testing::Not;

command_line parsed(std::initializer_list<const char*> arguments) {
    std::vector<const char*> all{"simplenet-httpd"};
    all.insert(all.end(), arguments);
    return parse_command_line(static_cast<int>(all.size()), all.data());
}

// A file of a configuration.
class httpd_command_line_test : public ::testing::Test {
protected:
    httpd_command_line_test() {
        std::ofstream{file} << "workers = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n"
                               "[[site]]\nroot = \".\"\n";
    }

    simplenet::testing::temporary_directory directory;
    const std::string file = directory / "site.toml";
};

TEST_F(httpd_command_line_test, without_a_file_the_current_directory_is_served_at_8080) {
    const reading_result read = configure(parsed({}));

    ASSERT_TRUE(read.problems.can_pass()) << httpd_tests::problems_of(read);
    EXPECT_EQ(read.configuration.listen.at(0).address, endpoint::loopback(8080));
    EXPECT_EQ(read.configuration.sites.at(0).root, std::filesystem::current_path());
    EXPECT_EQ(read.configuration.log.access, "-");
}

TEST_F(httpd_command_line_test, listen_may_be_repeated) {
    const reading_result read =
        configure(parsed({"--listen", "127.0.0.1:1", "--listen=[::1]:2", "--root", "/"}));

    ASSERT_EQ(read.configuration.listen.size(), 2U);
    EXPECT_EQ(read.configuration.listen[1].address.to_string(), "[::1]:2");
    EXPECT_EQ(read.configuration.sites.at(0).root, "/");
}

TEST_F(httpd_command_line_test, what_is_wrong_without_a_file_names_the_option) {
    const reading_result read =
        configure(parsed({"--listen", ":80", "--listen", "127.0.0.1:1", "--listen", "127.0.0.1:1",
                          "--root", "/no/such/directory"}));
    const std::string told = httpd_tests::problems_of(read, "simplenet-httpd");

    EXPECT_THAT(told, HasSubstr("--listen \":80\" is no address and port; did you mean"));
    EXPECT_THAT(told, HasSubstr("--listen \"127.0.0.1:1\" is given twice"));
    EXPECT_THAT(told, HasSubstr("`root`: \"/no/such/directory\" cannot be opened: No such file"));
}

TEST_F(httpd_command_line_test, options_that_are_the_files_are_refused_beside_it) {
    for (const auto& beside : std::vector<std::vector<const char*>>{
             {"--root", "/"}, {"--listen", "127.0.0.1:1"}, {"--tls", "a", "b"}}) {
        std::vector<const char*> all{"simplenet-httpd", "--config", "x"};
        all.insert(all.end(), beside.begin(), beside.end());
        const command_line line = parse_command_line(static_cast<int>(all.size()), all.data());

        EXPECT_EQ(line.command, command::wrong);
        EXPECT_THAT(line.message, HasSubstr(beside.front()));
        EXPECT_THAT(line.message, HasSubstr("--config"));
        EXPECT_THAT(line.message, HasSubstr("Try simplenet-httpd --help."));
    }
}

TEST_F(httpd_command_line_test, other_options_override_the_file) {
    const reading_result plain = configure(parsed({"--config", file.c_str()}));
    const reading_result read = configure(
        parsed({"--config", file.c_str(), "--workers", "0", "--pin", "--backend", "epoll"}));

    EXPECT_EQ(plain.configuration.workers, 2U);
    EXPECT_FALSE(plain.configuration.pin);
    EXPECT_EQ(read.configuration.workers, 0U);
    EXPECT_TRUE(read.configuration.pin);
    EXPECT_EQ(read.configuration.backend, simplenet::backend::epoll);
}

TEST_F(httpd_command_line_test, a_file_that_cannot_be_read_is_told_with_the_reason) {
    const reading_result read = configure(parsed({"--config", "/no/such/file"}));

    EXPECT_FALSE(read.problems.can_start());
    EXPECT_EQ(httpd_tests::problems_of(read, "file"),
              "file: cannot be read: No such file or directory\n");
    EXPECT_FALSE(configure(parsed({"--config", "/"})).problems.can_start());
}

TEST_F(httpd_command_line_test, pinned_workers_need_a_processor_each) {
    const reading_result read = configure(parsed({"--workers", "1024", "--pin"}));

    EXPECT_FALSE(read.problems.can_start());
    EXPECT_THAT(httpd_tests::problems_of(read),
                HasSubstr("`pin` needs a CPU for each of 1024 workers, and there are "));
}

TEST_F(httpd_command_line_test, what_other_servers_are_told_is_understood) {
    EXPECT_THAT(parsed({"-c", file.c_str()}).message, HasSubstr("is given by --config."));
    EXPECT_THAT(parsed({"-t"}).message, HasSubstr("is checked by --check."));
    EXPECT_THAT(parsed({"-s", "reload"}).message, HasSubstr("Signals reload it (SIGHUP)"));
    EXPECT_THAT(parsed({"-V"}).message, HasSubstr("is shown by --version."));
    EXPECT_THAT(parsed({file.c_str()}).message,
                HasSubstr("Is it the configuration: --config " + file + "?\n"));
    EXPECT_THAT(parsed({"."}).message, HasSubstr("Is it the directory: --root .?\n"));
    EXPECT_THAT(parsed({"--wrong"}).message, Not(HasSubstr("Is it")));
}

TEST_F(httpd_command_line_test, wrong_options_end_with_a_hint) {
    for (const char* wrong :
         {"--colour", "file", "--workers=-1", "--workers=many", "--workers=1025",
          "--backend=kqueue", "--root", "--tls=a", "--listen"}) {
        const command_line line = parsed({wrong});

        EXPECT_EQ(line.command, command::wrong) << wrong;
        EXPECT_THAT(line.message, ::testing::StartsWith("simplenet-httpd: ")) << wrong;
    }
}

TEST_F(httpd_command_line_test, the_command_is_what_is_asked_for) {
    EXPECT_EQ(parsed({}).command, command::serve);
    EXPECT_EQ(parsed({"--check"}).command, command::check);
    EXPECT_EQ(parsed({"--print-config"}).command, command::print);
    EXPECT_EQ(parsed({"--check", "--print-config"}).command, command::wrong);
    EXPECT_EQ(parsed({"--version"}).command, command::done);
    EXPECT_THAT(parsed({"--version"}).message,
                ::testing::MatchesRegex("simplenet-httpd [0-9.]+\n"));
    EXPECT_THAT(parsed({"--help"}).message, HasSubstr("--listen ADDRESS:PORT"));
}

} // namespace
