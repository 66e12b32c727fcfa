"""The subcommands of `moontap`, one module each, and the parts that they share.

A command's module has `add_parser`, which says what it takes, and a function from parsed options to
an exit code. What is slow to import (mitmproxy) is imported when a command runs, not before.
"""


class UsageError(Exception):
    """Wrong usage or unreadable input: one line for stderr, exit code 2."""
