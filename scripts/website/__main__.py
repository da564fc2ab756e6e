"""The command: python3 scripts/website --into FOLDER prepare|finish."""

import argparse
import pathlib
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))

# pylint: disable=wrong-import-position
from website.finish import finish  # noqa: E402
from website.prepare import prepare  # noqa: E402


def main():
    parser = argparse.ArgumentParser(prog="scripts/website", description="Steps of the target `doc` around Doxygen.")
    parser.add_argument("--root", type=pathlib.Path, default=SCRIPTS.parent, help="the source tree (default: this one)")
    parser.add_argument("--into", type=pathlib.Path, required=True, help="the folder of the build for the site")
    steps = parser.add_subparsers(dest="step", required=True)
    before = steps.add_parser("prepare", help="before Doxygen: writes pages, navigation, header")
    before.add_argument("--names", type=pathlib.Path, required=True, help="Doxygen's tag file of the headers alone")
    before.add_argument("--doxygen", required=True, help="its version")
    steps.add_parser("finish", help="after Doxygen: corrects its pages")
    options = vars(parser.parse_args())
    {"prepare": prepare, "finish": finish}[options.pop("step")](**options)


if __name__ == "__main__":
    main()
