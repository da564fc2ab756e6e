"""Rules of the tree that the compiler does not check. `python3 scripts/lint --help` lists the checks.

Each module has a check(root, ...) that returns (complaints, summary): lines of text, and a line that says how
much was checked.
"""
