"""The entry point: python3 scripts/lint CHECK [OPTIONS]. The status is 1 if something is wrong."""

import argparse
import pathlib
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))

# pylint: disable=wrong-import-position
from lint import docs, exports, layers, namespace, site  # noqa: E402


def arguments(given):
    parser = argparse.ArgumentParser(prog="scripts/lint", description="Checks the rules of the tree.",
                                     fromfile_prefix_chars="@")
    parser.add_argument("--root", type=pathlib.Path, default=SCRIPTS.parent, help="another tree")
    checks = parser.add_subparsers(dest="check", required=True, metavar="CHECK")

    def add(module, name, **options):
        summary = module.__doc__.split("\n\n")[0].replace("\n", " ")
        check = checks.add_parser(name, help=summary, description=module.__doc__, fromfile_prefix_chars="@",
                                  formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        check.set_defaults(module=module)
        return check

    add(layers, "layers")
    for module, name in ((namespace, "namespace"), (docs, "docs")):
        add(module, name).add_argument("--fix", action="store_true", help="write the correct text")
    symbols = add(exports, "exports")
    symbols.add_argument("library")
    symbols.add_argument("--used", nargs="*", default=[], metavar="OBJECT")
    add(site, "site").add_argument("site", metavar="FOLDER", help="<build>/doc/html")
    return parser.parse_args(given)


def main(given=None):
    options = vars(arguments(given))
    check, module = options.pop("check"), options.pop("module")
    complaints, summary = module.check(**options)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{check}: {summary}" + (f"; {len(complaints)} wrong" if complaints else ""))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
