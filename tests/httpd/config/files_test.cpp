// What is said about files that a configuration names.

#include "httpd/config/certificates.hpp"
#include "httpd/config/documents.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/blocking/local_listener.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace {

using namespace httpd;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A directory with `www`, and configurations in it.
class httpd_files_test : public ::testing::Test {
protected:
    httpd_files_test() { std::filesystem::create_directory(directory / "www"); }

    // With the names of this directory left out.
    std::string told(const std::string& lines, const std::string& listen = "") const {
        const std::string text =
            "[[listen]]\naddress = \"127.0.0.1:0\"\n" + listen + "[[site]]\n" + lines;
        std::string result = httpd_tests::problems_of(read_text(text, directory / "site.toml"));
        const std::string here = directory / "";
        for (std::size_t at = 0; (at = result.find(here, at)) != std::string::npos;)
            result.erase(at, here.size());
        return result;
    }
    void make(const std::string& name) const { std::ofstream{directory / name} << "text\n"; }

    simplenet::testing::temporary_directory directory;
};

TEST_F(httpd_files_test, a_root_must_be_a_directory) {
    make("file");

    EXPECT_EQ(told("root = \"www\"\n"), "");
    EXPECT_EQ(told("root = \"none\"\n"), "site.toml:4:8: `root`: \"none\" cannot be opened: No "
                                         "such file or directory\n");
    EXPECT_EQ(told("root = \"file\"\n"),
              "site.toml:4:8: `root`: \"file\" cannot be opened: Not a directory\n");
}

TEST_F(httpd_files_test, a_file_of_passwords_must_be_one) {
    std::ofstream{directory / "users"}
        << "a:$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
    make("text");

    EXPECT_EQ(told("root = \"www\"\nauth = { file = \"users\" }\n"), "");
    EXPECT_EQ(told("root = \"www\"\nauth = { file = \"text\" }\n"),
              "site.toml:5:17: `file`: \"text\": line 1: no `user:hash`\n");
    EXPECT_EQ(told("root = \"www\"\nauth = { file = \"none\" }\n"),
              "site.toml:5:17: `file`: \"none\" cannot be read: No such file or directory\n");
    EXPECT_EQ(told("root = \"www\"\nauth = { file = \"www\" }\n"),
              "site.toml:5:17: `file`: \"www\" is no file\n");
    ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
    EXPECT_EQ(told("root = \"www\"\nauth = { file = \"fifo\" }\n"),
              "site.toml:5:17: `file`: \"fifo\" is no file\n");
}

TEST_F(httpd_files_test, hashes_that_cost_differently_are_told) {
    const std::string bcrypt = ":$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
    const std::string same_bcrypt =
        ":$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
    const std::string dearer_bcrypt =
        ":$2b$05$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
    const std::string sha =
        ":$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2\n";
    std::ofstream{directory / "one"} << "a" + bcrypt + "b" + same_bcrypt;
    std::ofstream{directory / "three"} << "a" + bcrypt + "b" + sha + "c" + dearer_bcrypt;

    EXPECT_EQ(told("root = \"www\"\nauth = { file = \"one\" }\n"), "");
    EXPECT_EQ(
        told("root = \"www\"\nauth = { file = \"three\" }\n"),
        "site.toml:5:17: warning: `file`: \"three\" has hashes of 3 kinds (method, cost, for SHA-2 "
        "the length of the salt): a wrong password is hashed once with each\n");
}

TEST_F(httpd_files_test, a_configuration_that_is_a_fifo_without_a_writer_is_empty) {
    const std::string file = directory / "site.toml";
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);

    EXPECT_FALSE(read_file(file).problems.can_start());
}

TEST_F(httpd_files_test, keys_that_are_nested_too_deep_are_refused) {
    std::string deep;
    for (int each = 0; each < 50'000; ++each)
        deep += "a.";

    for (const std::string& text :
         {"x = 1\n" + deep + "b = 1", "\n[" + deep + "b]\n", "\nx = { " + deep + "b = 1 }\n"}) {
        EXPECT_EQ(httpd_tests::problems_of(read_text(text, "site.toml", false)),
                  "site.toml:2:1: has more dots than any keys need\n");
    }
}

TEST_F(httpd_files_test, gateways_need_a_directory_for_temporary_files) {
    const std::string lines = "root = \"www\"\n[[site.route]]\nmatch = \"/app/*\"\n"
                              "proxy = [\"127.0.0.1:1\"]\n";
    const char* const before = std::getenv("TMPDIR");
    const std::string kept = before == nullptr ? "" : before;

    ::setenv("TMPDIR", "/no/such/directory", 1);
    EXPECT_EQ(told(lines),
              "site.toml:5:1: warning: no temporary files can be made in \"/no/such/directory\" "
              "(TMPDIR): No such file or directory. Large bodies get 500, and slow clients make "
              "backends wait\n");
    EXPECT_EQ(told("root = \"www\"\n"), "");
    ::setenv("TMPDIR", (directory / ".").c_str(), 1);
    EXPECT_EQ(told(lines), "");
    if (before == nullptr) {
        ::unsetenv("TMPDIR");
    } else {
        ::setenv("TMPDIR", kept.c_str(), 1);
    }
}

TEST_F(httpd_files_test, a_socket_that_cannot_be_connected_to_is_a_warning) {
    const std::string lines = "[[site.route]]\nmatch = \"/app/*\"\nproxy = \"unix:app.sock\"\n";
    EXPECT_EQ(told(lines), "site.toml:6:9: warning: the socket \"app.sock\" is not there: No such "
                           "file or directory\n");
    make("app.sock");
    EXPECT_EQ(told(lines), "site.toml:6:9: warning: the socket \"app.sock\" is no socket\n");

    std::filesystem::remove(directory / "app.sock");
    const auto at = simplenet::local_endpoint::parse(std::string{directory / "app.sock"});
    const auto listener = simplenet::blocking::local_listener::bind(at.value());
    ASSERT_TRUE(listener);
    EXPECT_EQ(told(lines), "");
}

TEST_F(httpd_files_test, a_page_of_an_error_that_is_missing_is_a_warning) {
    const std::string lines = "root = \"www\"\nerror_pages = { 404 = \"/404.html\" }\n";

    EXPECT_EQ(told(lines),
              "site.toml:5:23: warning: `error_pages`: there is no file \"www/404.html\"\n");
    make("www/404.html");
    EXPECT_EQ(told(lines), "");
}

TEST_F(httpd_files_test, a_fallback_to_itself_needs_the_file) {
    const std::string lines =
        "root = \"www\"\n[[site.route]]\nmatch = \"/*\"\nfallback = \"/index.html\"\n";

    EXPECT_EQ(told(lines), "site.toml:6:9: the fallback \"/index.html\" leads to \"/*\" again, and "
                           "there is no file \"www/index.html\"\n");
    make("www/index.html"); // as of a program that runs in the browser
    EXPECT_EQ(told(lines), "");
}

TEST_F(httpd_files_test, the_directory_of_a_log_must_be_there) {
    EXPECT_EQ(told("root = \"www\"\n[log]\naccess = \"access.log\"\n"), "");
    EXPECT_EQ(told("root = \"www\"\n[log]\naccess = \"none/access.log\"\nerror = \"www\"\n"),
              "site.toml:6:10: `access`: \"none\" cannot be opened: No such file or directory\n"
              "site.toml:7:9: `error`: \"www\" is a directory\n");
}

#if SIMPLENET_HTTPD_TLS

std::string pair(const std::string& name, const std::string& key = "") {
    const std::string directory = std::string{TLS_CERTIFICATES} + '/';
    return "{ certificate = \"" + directory + name + ".pem\", key = \"" + directory +
           (key.empty() ? name : key) + ".key\" }";
}

TEST_F(httpd_files_test, certificates_that_can_be_used_are_not_mentioned) {
    const std::string site = "root = \"www\"\n";

    EXPECT_EQ(told(site, "tls = " + pair("server") + '\n'), "");
    EXPECT_EQ(told(site, "tls = [" + pair("one") + ", " + pair("two") + "]\n"), "");
    EXPECT_EQ(told(site, "tls = [" + pair("server") + ", " + pair("server_rsa") + "]\n"), "");
}

TEST_F(httpd_files_test, a_key_of_another_certificate_is_refused) {
    EXPECT_THAT(told("root = \"www\"\n", "tls = " + pair("one", "two") + '\n'),
                AllOf(HasSubstr("site.toml:3:23: `certificate` and `key`: "),
                      HasSubstr("the key does not belong to the certificate")));
}

TEST_F(httpd_files_test, a_certificate_that_has_expired_is_a_warning) {
    EXPECT_THAT(told("root = \"www\"\n", "tls = " + pair("expired") + '\n'),
                AllOf(HasSubstr("site.toml:3:23: warning: `certificate`: "),
                      HasSubstr("expired.pem\" expired on 2020-01-02\n")));
    EXPECT_THAT(told("root = \"www\"\n", "tls = " + pair("future") + '\n'),
                HasSubstr("future.pem\" is not valid before 2045-01-01\n"));
}

TEST_F(httpd_files_test, a_certificate_that_nothing_chooses_is_found) {
    EXPECT_THAT(
        told("root = \"www\"\n", "tls = [" + pair("server") + ", " + pair("revoked") + "]\n"),
        HasSubstr("revoked.pem\": those before it have all of its names\n"));
    EXPECT_THAT(
        told("root = \"www\"\n", "tls = [" + pair("server") + ", " + pair("nameless") + "]\n"),
        HasSubstr("nameless.pem\": it has no DNS name (subjectAltName)\n"));
}

TEST_F(httpd_files_test, files_that_are_no_certificates_are_refused) {
    const std::string garbage = "{ certificate = \"" + std::string{TLS_CERTIFICATES} +
                                "/garbage.pem\", key = \"none.key\" }";
    const std::string told_first = told("root = \"www\"\n", "tls = " + garbage + '\n');
    make("none.key");
    const std::string told_second = told("root = \"www\"\n", "tls = " + garbage + '\n');

    EXPECT_THAT(told_first, HasSubstr("`key`: \"none.key\" cannot be read: No such file"));
    EXPECT_THAT(told_second, HasSubstr("garbage.pem\" has no certificate in PEM\n"));
}

// It used to end the program, also at a reload.
TEST_F(httpd_files_test, a_list_without_any_certificate_is_told) {
    EXPECT_THAT(told("root = \"www\"\n", "tls = [\"one.pem\", \"one.key\"]\n"),
                HasSubstr("site.toml:3:8: `tls` "));
}

TEST_F(httpd_files_test, the_names_of_a_certificate_are_known) {
    const auto facts = facts_of(std::string{TLS_CERTIFICATES} + "/server.pem");

    ASSERT_TRUE(facts) << facts.error();
    EXPECT_THAT(facts->names, ::testing::ElementsAre("localhost", "127.0.0.1", "::1"));
    EXPECT_EQ(facts->key_kind, "EC");
}

#else

TEST_F(httpd_files_test, without_tls_certificates_are_refused) {
    make("a");
    EXPECT_THAT(told("root = \"www\"\n", "tls = { certificate = \"a\", key = \"a\" }\n"),
                HasSubstr("built without TLS"));
}

#endif

} // namespace
