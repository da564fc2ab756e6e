"""Each check of scripts/lint: quiet on a good tree, and what it says about a bad one."""

import contextlib
import importlib
import io
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from lint import docs, exports, layers, namespace

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

TABLE = """\
# a comment
core     |                    | values
blocking | core (nonblocking) | sockets that wait
nonblocking | core (blocking) | sockets that never wait
io_uring | core               | a backend
http     | core nonblocking   | a protocol; on top

<liburing*> | src/io_uring/ring* | the ring
"""

HEADER = """\
#pragma once

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
class socket;
}  // namespace simplenet::v0

#pragma GCC visibility pop
"""


class TreeTest(unittest.TestCase):
    """A tree of the files that a test writes."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name).resolve()

    def write(self, **files):
        """A file for each name, in which two underscores are a slash and `_hpp`, `_cpp`, `_md`, `_txt` an ending."""
        for name, text in files.items():
            path = name.replace("__", "/")
            stem, _, ending = path.rpartition("_")
            self.put(f"{stem}.{ending}", text)

    def put(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


class LayersTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.put("src/layers.txt", TABLE)
        for layer in ("core", "blocking", "nonblocking", "io_uring", "http"):
            self.put(f"src/{layer}/CMakeLists.txt", "")

    def complaints(self):
        return layers.check(self.root)[0]

    def assert_complains(self, *words):
        found = self.complaints()
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_downwards_within_and_out_of_the_tree_is_right(self):
        self.write(
            include__simplenet__core__error_hpp="#include <vector>\n#include <sys/socket.h>\n",
            include__simplenet__http__request_hpp="#include <simplenet/core/error.hpp>\n",
            src__http__request_cpp='#include "http/parser.hpp"\n#include <simplenet/nonblocking/stream.hpp>\n',
            include__simplenet__simplenet_hpp="#include <simplenet/http/request.hpp>\n",
        )
        self.assertEqual(self.complaints(), [])

    def test_upwards_is_wrong(self):
        self.write(include__simplenet__core__error_hpp="#include <simplenet/http/request.hpp>\n")
        self.assert_complains("include/simplenet/core/error.hpp", "core must not include http")

    def test_a_private_header_upwards_is_wrong(self):
        self.write(src__core__error_cpp='#  include "http/parser.hpp"\n')
        self.assert_complains("src/core/error.cpp", "core must not include http")

    def test_layers_beside_each_other_are_kept_apart(self):
        self.write(src__http__request_cpp='#include "io_uring/ring.hpp"\n')
        self.assert_complains("http must not include io_uring")

    def test_folders_below_folders_belong_to_the_layer(self):
        self.write(
            include__simplenet__core__detail__list_hpp="#include <simplenet/http/detail/table.hpp>\n",
            src__http__detail__deep__table_cpp="#include <simplenet/core/detail/list.hpp>\n",
        )
        self.assert_complains("core/detail/list.hpp", "core must not include http")

    def test_a_header_beside_a_file_is_found(self):
        self.write(
            src__core__error_hpp='#include "../http/parser.hpp"\n', src__http__parser_hpp='#include "table.hpp"\n',
            src__http__table_hpp="",
        )
        self.assert_complains("core must not include http")

    def test_in_brackets_is_for_sources_only(self):
        self.write(src__blocking__stream_cpp="#include <simplenet/nonblocking/stream.hpp>\n")
        self.assertEqual(self.complaints(), [])
        self.write(include__simplenet__blocking__stream_hpp="#include <simplenet/nonblocking/stream.hpp>\n")
        self.assert_complains("include/simplenet/blocking/stream.hpp", "blocking must not include nonblocking")

    def test_a_public_header_has_no_private_one(self):
        self.write(include__simplenet__http__request_hpp='#include "core/secret.hpp"\n')
        self.assert_complains("which is private")

    def test_a_layer_has_no_umbrella_of_all(self):
        self.write(src__http__request_cpp="#include <simplenet/simplenet.hpp>\n#include <simplenet/fwd.hpp>\n")
        self.assert_complains("simplenet.hpp, which is above all layers")

    def test_an_umbrella_of_a_layer_belongs_to_it(self):
        self.write(
            include__simplenet__core_hpp="#include <simplenet/core/error.hpp>\n",
            src__core__error_cpp="#include <simplenet/http.hpp>\n",
        )
        self.assert_complains("core must not include http")

    def test_an_umbrella_of_a_layer_has_all_that_users_may_include(self):
        self.write(
            include__simplenet__core_hpp="#include <simplenet/core/error.hpp>\n",
            include__simplenet__core__error_hpp="",
            include__simplenet__core__buffer_hpp="",
            include__simplenet__core__detail__ring_hpp="",
        )
        self.assert_complains("include/simplenet/core.hpp: does not include buffer.hpp")

    def test_a_folder_is_in_the_table(self):
        self.write(src__tls__stream_cpp="")
        self.assert_complains("the layer tls is not in src/layers.txt")

    def test_a_source_belongs_to_a_layer(self):
        self.write(src__loose_cpp="")
        self.assert_complains("src/loose.cpp: belongs to no layer")

    def test_a_layer_has_a_folder(self):
        shutil.rmtree(self.root / "src" / "http")
        self.assert_complains("http has no folder")

    def test_the_table_goes_from_low_to_high(self):
        self.put("src/layers.txt", TABLE.replace("core     |                    |", "core     | http               |"))
        self.assert_complains("src/layers.txt:2", "http is not below core")

    def test_a_line_of_the_table_has_three_parts(self):
        self.put("src/layers.txt", TABLE + "sync core locks\n")
        self.assert_complains("not `name | may include | what it is`")

    def test_a_fenced_header_has_its_place(self):
        self.write(src__io_uring__ring_cpp="#include <liburing.h>\n")
        self.assertEqual(self.complaints(), [])
        self.write(src__io_uring__backend_cpp="#include <liburing/io_uring.h>\n")
        self.assert_complains("src/io_uring/backend.cpp", "only src/io_uring/ring* includes <liburing/io_uring.h>")

    def test_a_cycle_within_a_layer_is_wrong(self):
        self.write(
            src__http__a_hpp='#include "http/b.hpp"\n', src__http__b_hpp='#include "http/detail/c.hpp"\n',
            src__http__detail__c_hpp='#include "http/a.hpp"\n',
        )
        self.assert_complains("a cycle", "src/http/a.hpp -> src/http/b.hpp -> src/http/detail/c.hpp -> src/http/a.hpp")

    def test_cmake_reads_the_same_layers(self):
        if not shutil.which("cmake"):
            self.skipTest("cmake is missing")
        lines = (ROOT / "CMakeLists.txt").read_text().splitlines()
        commands = ("file(STRINGS src/layers.txt", "list(TRANSFORM simplenet_layers")
        reading = [line for line in lines if line.startswith(commands)]
        self.assertEqual(len(reading), 2)
        reading[0] = reading[0].replace("src/layers.txt", str(self.root / "src/layers.txt"))
        self.put("read.cmake", "\n".join([*reading, 'message("${simplenet_layers}")']))
        said = subprocess.run(["cmake", "-P", self.root / "read.cmake"], capture_output=True, text=True, check=True)
        self.assertEqual(said.stderr.strip().split(";"), list(layers.Table(TABLE).layers))


class NamespaceTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.put(namespace.PRINTERS, 'ABI = "simplenet::v0::"\n')
        self.put(namespace.DECLARED, "namespace simplenet {\ninline namespace v0 {}\n}\n")
        self.put("include/simplenet/core/a.hpp", HEADER)

    def complaints(self, **options):
        return namespace.check(self.root, **options)[0]

    def test_a_good_tree(self):
        name = "namespace simplenet::v0::detail"
        self.put("src/core/a.cpp", f"{namespace.INCLUDE}{name} {{\n}}  // {name}\n")
        self.assertEqual(self.complaints(), [])

    def test_without_the_version_is_wrong_and_is_fixed(self):
        self.put("src/core/a.cpp", "namespace simplenet::detail {\n} // namespace simplenet::detail\n")
        self.assertEqual(len(self.complaints()), 1)
        self.assertEqual(self.complaints(fix=True), [])
        self.assertIn("namespace simplenet::v0::detail {", (self.root / "src/core/a.cpp").read_text())
        self.assertEqual(self.complaints(), [])

    def test_a_public_header_without_its_visibility_is_wrong_and_is_fixed(self):
        for wrong in (HEADER.replace("#pragma GCC visibility pop\n", ""), HEADER.replace(namespace.PUSH + "\n", "")):
            self.put("include/simplenet/core/a.hpp", wrong)
            self.assertEqual(len(self.complaints()), 1)
            self.assertEqual(self.complaints(fix=True), [])
            self.assertEqual((self.root / "include/simplenet/core/a.hpp").read_text(), HEADER)

    def test_without_the_declaration_before_it_is_wrong_and_is_fixed(self):
        for before in ("", "#pragma once\n// What it is.\n", "#include <vector>\n"):
            self.put("src/core/a.hpp", before + "\nnamespace simplenet::v0 {\n}\n")
            self.assertEqual(len(self.complaints()), 1)
            self.assertEqual(self.complaints(fix=True), [])
            self.assertEqual((self.root / "src/core/a.hpp").read_text(),
                             before + "\n" + namespace.INCLUDE + "\nnamespace simplenet::v0 {\n}\n")

    def test_a_second_declaration_is_wrong(self):
        self.put("src/core/a.hpp", namespace.INCLUDE + "namespace simplenet {\ninline namespace v0 {}\n}\n")
        self.assertIn("second declaration", self.complaints()[0])

    def test_no_declaration_is_wrong(self):
        self.put(namespace.DECLARED, "namespace simplenet {\n}\n")
        self.assertIn("does not declare v0", self.complaints()[0])

    def test_another_version_is_wrong(self):
        self.put("include/simplenet/core/a.hpp", HEADER.replace("v0", "v1"))
        self.assertIn("a version other than v0", self.complaints()[0])

    def test_the_printers_of_gdb_have_the_same_version(self):
        self.put(namespace.PRINTERS, 'ABI = "simplenet::v1::"\n')
        self.assertIn(namespace.PRINTERS, self.complaints()[0])


class DocsTest(TreeTest):
    PAGE = "# Page\n\n## One heading\n\n<!-- snippet: docs/snippets/a.cpp use -->\n```cpp\nuse();\n```\n"
    LAYERS = "# Layers\n\n<!-- layers -->\n| layer | may include | what it is |\n|---|---|---|\n| `core` | | values |\n"

    def setUp(self):
        super().setUp()
        self.put("src/layers.txt", "core | | values\n")
        self.put("docs/snippets/a.cpp", "void f() {\n    //! [use]\n    use();\n    //! [use]\n}\n")
        self.put("README.md", self.PAGE)
        self.put("docs/architecture.md", self.LAYERS)

    def assert_complains(self, *words):
        found = docs.check(self.root)[0]
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_good_tree(self):
        self.put("docs/usage/a.md", "[one](../../README.md#one-heading), [outside](https://example.com/nothing)\n")
        self.assertEqual(docs.check(self.root)[0], [])

    def test_a_block_that_differs_is_wrong_and_is_fixed(self):
        self.put("README.md", self.PAGE.replace("use();", "misuse();"))
        self.assert_complains("README.md:5", "differs from docs/snippets/a.cpp [use]")
        docs.check(self.root, fix=True)
        self.assertEqual((self.root / "README.md").read_text(), self.PAGE)

    def test_a_block_without_a_source_is_wrong(self):
        self.put("docs/usage/a.md", "```cpp\nuse();\n```\n")
        self.assert_complains("docs/usage/a.md:1", "without <!-- snippet")

    def test_a_block_without_its_region_is_wrong(self):
        self.put("README.md", self.PAGE.replace("a.cpp use", "a.cpp other"))
        self.assert_complains("no //! [other] twice in docs/snippets/a.cpp")

    def test_a_cell_is_found_in_its_file(self):
        rows = "<!-- cells: docs/snippets/a.cpp -->\n| a | b |\n|---|---|\n| x | `{}` |\n"
        self.put("docs/usage/a.md", rows.format("use();"))
        self.assertEqual(docs.check(self.root)[0], [])
        self.put("docs/usage/a.md", rows.format("use(1);"))
        self.assert_complains("`use(1);` is not in docs/snippets/a.cpp")

    def test_a_test_that_is_named_exists(self):
        self.put("tests/core/a_test.cpp", "TEST(a_test, works) {\n}\n")
        rows = "<!-- tests -->\n| a | b |\n|---|---|\n| x | `a_test.works`, `{}` |\n"
        self.put("docs/usage/a.md", rows.format("a_test"))
        self.assertEqual(docs.check(self.root)[0], [])
        self.put("docs/usage/a.md", rows.format("a_test.fails"))
        self.assert_complains("there is no test a_test.fails")

    def test_a_link_leads_to_a_file_and_a_heading(self):
        self.put("docs/a.md", "\n[x](gone.md)\n")
        self.assert_complains("docs/a.md:2", "the link to gone.md leads nowhere")
        self.put("docs/a.md", "[x](../README.md#no-heading)\n")
        self.assert_complains("README.md has no heading #no-heading")
        self.put("docs/a.md", "```\n[x](gone.md)\n```\n")
        self.assertEqual(docs.check(self.root)[0], [])

    def test_the_number_of_a_decision_leads_to_it(self):
        self.put("docs/0001-a.md", "")
        self.put("docs/a.md", "[0001](0001-a.md) [0002](0001-a.md)\n")
        self.assert_complains("[0002] leads to 0001-a.md")

    def test_the_layers_of_a_page_are_those_of_the_table_and_are_fixed(self):
        self.put("src/layers.txt", "core | | values\nip | core | names\n")
        self.assert_complains("docs/architecture.md", "differs from src/layers.txt")
        docs.check(self.root, fix=True)
        self.assertEqual((self.root / "docs/architecture.md").read_text(), self.LAYERS + "| `ip` | `core` | names |\n")

    def test_one_page_has_the_layers(self):
        self.put("docs/architecture.md", "# Layers\n")
        self.assert_complains("no page contains the table of layers")


@unittest.skipUnless(shutil.which("cc") and shutil.which("nm"), "a C compiler or nm is missing")
class ExportsTest(TreeTest):
    """Libraries of C++ names, made by a C compiler."""

    LISTEN = "_ZN9simplenet2v06socket6listenEv"  # simplenet::v0::socket::listen()

    def setUp(self):
        super().setUp()
        self.put("include/simplenet/a.hpp", "class socket { void listen(); };  // not bind\n")

    def complaints(self, *names, used=()):
        self.put("a.c", "".join(f"void {name}(void) {{}}\n" for name in names))
        self.put("b.c", "".join(f"void {name}(void);\n" for name in used)
                 + "void program(void) {" + "".join(f" {name}();" for name in used) + "}\n")
        library, program = self.root / "a.so", self.root / "b.o"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, self.root / "a.c"], check=True)
        subprocess.run(["cc", "-c", "-o", program, self.root / "b.c"], check=True)
        return exports.check(self.root, library, [program])[0]

    def test_what_a_public_header_declares_is_right(self):
        self.assertEqual(self.complaints(self.LISTEN, "simplenet_dump_tasks", used=[self.LISTEN]), [])

    def test_what_no_public_header_declares_is_wrong(self):
        self.assertEqual(self.complaints("_ZN9simplenet2v06socket4bindEv"),
                         ["exported, but in no public header: simplenet::v0::socket::bind()"])

    def test_what_is_not_ours_is_wrong(self):
        self.assertEqual(self.complaints("helper"), ["exported, but not ours: helper"])

    def test_what_programs_need_is_exported(self):
        self.assertEqual(self.complaints("simplenet_dump_tasks", used=[self.LISTEN]),
                         ["needed by programs, but not exported: simplenet::v0::socket::listen()"])


class CommandTest(TreeTest):
    """python3 scripts/lint."""

    def run_lint(self, *words):
        door = importlib.import_module("lint.__main__")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = door.main(list(words))
            except SystemExit as ended:
                status = ended.code
        return status, out.getvalue(), err.getvalue()

    def test_this_tree_is_good(self):
        for check in ("layers", "namespace", "docs"):
            with self.subTest(check=check):
                self.assertEqual(self.run_lint(check)[::2], (0, ""))

    def test_says_what_is_wrong_and_fails(self):
        self.put("src/layers.txt", "core | | values\n")
        status, out, err = self.run_lint("--root", str(self.root), "layers")
        self.assertEqual((status, err), (1, "src/layers.txt: core has no folder\n"))
        self.assertIn("1 wrong", out)

    def test_an_unknown_check_is_refused(self):
        self.assertEqual(self.run_lint("spelling")[0], 2)

    def test_objects_come_from_a_file_as_well(self):
        door = importlib.import_module("lint.__main__")
        self.put("objects.txt", "--used\na.o\nb.o\n")
        options = door.arguments(["exports", "lib.so", f"@{self.root}/objects.txt"])
        self.assertEqual((options.library, options.used), ("lib.so", ["a.o", "b.o"]))


if __name__ == "__main__":
    unittest.main()
