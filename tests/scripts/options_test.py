"""The command lines of the scripts: parse_options() of scripts/lib/common.sh, and the scripts that use it."""

import pathlib
import subprocess
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"


def bash(script, *words):
    return subprocess.run(["bash", "-c", script, "script.sh", *words], capture_output=True, text=True, check=False)


class ParseOptionsTest(unittest.TestCase):
    def parse(self, options, *words):
        """(status, what the variables are or what was said)"""
        found = bash(
            f"""set -euo pipefail
            source "{SCRIPTS}/lib/common.sh"
            usage() {{ echo "the usage"; }}
            jobs=7 quiet=no presets=() name=
            parse_options {options} -- "$@"
            echo "$jobs|$quiet|${{presets[*]}}|$name|${{arguments[*]}}|${{behind[*]}}"
            """,
            *words,
        )
        return found.returncode, (found.stdout + found.stderr).strip()

    def test_values_flags_and_lists_become_variables(self):
        options = "jobs=number quiet preset=+preset name=text"
        self.assertEqual(self.parse(options), (0, "7|no||||"))
        self.assertEqual(self.parse(options, "--jobs", "3", "--quiet"), (0, "3|yes||||"))
        self.assertEqual(self.parse(options, "--preset", "dev", "--preset", "asan"), (0, "7|no|dev asan|||"))
        self.assertEqual(self.parse(options, "--name", "a b"), (0, "7|no||a b||"))

    def test_other_arguments_are_kept_wherever_they_stand(self):
        self.assertEqual(self.parse("jobs=number", "one", "--jobs", "2", "two"), (0, "2|no|||one two|"))

    def test_arguments_after_two_dashes_are_left_alone(self):
        self.assertEqual(self.parse("jobs=number", "a", "--", "--jobs", "x"), (0, "7|no|||a|--jobs x"))

    def test_a_dash_of_an_option_is_an_underscore_of_the_variable(self):
        script = f'source "{SCRIPTS}/lib/common.sh"; parse_options no-build -- "$@"; echo "$no_build"'
        self.assertEqual(bash(script, "--no-build").stdout, "yes\n")

    def test_help_is_the_usage(self):
        self.assertEqual(self.parse("jobs=number", "--help"), (0, "the usage"))
        self.assertEqual(self.parse("jobs=number", "-h", "--wrong"), (0, "the usage"))

    def test_wrong_usage_prints_the_usage(self):
        for words, said in (
            (["--wrong"], "unknown option: --wrong"),
            (["-j"], "unknown option: -j"),
            (["--job", "3"], "unknown option: --job"),
            (["--jobs"], "--jobs needs a number"),
            (["--jobs", "0"], "--jobs needs a number"),
            (["--jobs", "many"], "--jobs needs a number"),
            (["--name", ""], "--name needs a value"),
            (["--preset", "none"], "--preset needs one of: test dev"),
        ):
            with self.subTest(words=words):
                status, text = self.parse("jobs=number preset=+preset name=text", *words)
                self.assertEqual(status, 2)
                self.assertIn(said, text)
                self.assertIn("the usage", text)


class ScriptsTest(unittest.TestCase):
    """A wrong command line does nothing but say so."""

    def run_script(self, name, *words):
        found = subprocess.run([SCRIPTS / name, *words], capture_output=True, text=True, check=False, timeout=60)
        return found.returncode, found.stdout + found.stderr

    def scripts(self):
        found = sorted(each.name for each in SCRIPTS.glob("*.sh") if "parse_options" in each.read_text())
        self.assertGreater(len(found), 8)
        return [*found, "run_perf_suite.sh"]

    def test_each_has_its_help(self):
        for name in self.scripts():
            with self.subTest(script=name):
                status, text = self.run_script(name, "--help")
                self.assertEqual(status, 0)
                self.assertIn(f"scripts/{name}", text)

    def test_each_refuses_unknown_options(self):
        for name in self.scripts():
            with self.subTest(script=name):
                status, text = self.run_script(name, "--frobnicate")
                self.assertEqual(status, 2)
                self.assertIn("usage", text.lower())

    def test_numbers_and_names_are_checked(self):
        for name, *words in (
            ("abi_check.sh", "--jobs", "x"), ("abi_check.sh", "one", "two"), ("fuzz.sh", "no_target"),
            ("fuzz.sh", "--jobs"), ("matrix.sh", "no_cell"), ("mutate.sh", "no_mutation"),
            ("mutate.sh", "--seconds", "0"), ("mutate.sh", "--tests"), ("perf_check.sh",), ("perf_check.sh", "compare"),
            ("perf_check.sh", "instructions", "--cpu", "x"), ("perf_check.sh", "instructions", "--case"),
            ("quickstart.sh", "--round-trips", "many"), ("quickstart.sh", "more"),
            ("quickstart.sh", "--serve", "/no/such/directory"), ("simulate.sh", "x"),
            ("simulate.sh", "1", "2", "3"), ("soak.sh", "--preset", "none"), ("soak.sh", "--minutes", "-1"),
            ("test.sh", "--jobs", "0"), ("test.sh", "timer"), ("tidy.sh", "--seconds", "x"),
        ):
            with self.subTest(script=name, words=words):
                self.assertEqual(self.run_script(name, *words)[0], 2)

    def test_lists(self):
        self.assertIn("gcc12-O3-shared", self.run_script("matrix.sh", "--list")[1])
        status, text = self.run_script("mutate.sh", "--list")
        self.assertEqual(status, 0)
        self.assertRegex(text, r"(?m)^\w+ +\w+")


if __name__ == "__main__":
    unittest.main()
