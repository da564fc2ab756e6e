"""What the tree is held to, beyond compiling. `python3 scripts/lint --help` names the checks.

Each module has a check(root, ...) that returns (complaints, summary): lines for people, and what was looked at.
"""
