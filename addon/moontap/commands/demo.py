"""`moontap demo`: one task, without rewriting and with it, all in this process and on loopback.

Options in; what was measured, as lines and a table on stdout, and exit code 1 where it is not what
the demo claims. It leaves two capture folders and nothing else.
"""

import argparse
import asyncio

from moontap.commands import UsageError
from moontap.commands.options import Commands

_EXAMPLE = """\
example:
  moontap demo
  moontap demo --dir /tmp/captures

Needs no key and no network, asks nothing and leaves nothing running.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="see the same task without and with the tap's rewriting",
        description="Runs a small agent against a stand-in for the Kimi API, through the real "
        "mitmproxy: first with ids as they come, then with unique ones.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "--dir", default="moontap-captures", metavar="DIR", help="where the captures go"
    )
    parser.set_defaults(execute=demo)


def demo(options: argparse.Namespace) -> int:
    """Run it; exit code 0 where both runs went as claimed, else 1. Raises UsageError."""
    if not options.dir:
        raise UsageError("--dir: the demo shows a capture, so it needs a folder for it")
    # Slow to import (the stand-in's server, and mitmproxy): `moontap --help` shall not wait for it.
    from moontap.demo.show import show

    return asyncio.run(show(options.dir))
