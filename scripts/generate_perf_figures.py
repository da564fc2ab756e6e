#!/usr/bin/env python3
"""Draws the figures of the README and prints its tables; see --help. The work is done in benchmarks/suite/."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "benchmarks"))
sys.dont_write_bytecode = True

from suite.figures import main  # noqa: E402  pylint: disable=wrong-import-position

main()
