"""`moontap standin`: a stand-in for the API with the fault in it, for trying things without a key.

Its own options go on to `moontap.standin`, which says what they are.
"""

import argparse

from moontap.commands.options import Commands


def add_parser(commands: Commands) -> None:
    """Add the command; what stands behind it is not looked at here."""
    parser = commands.add_parser(
        "standin", help="a stand-in for the API, with reused ids or without; no key", add_help=False
    )
    parser.set_defaults(execute=standin, passes=True, arguments=[])


def standin(options: argparse.Namespace) -> int:
    """Serve until a signal; exit code 0, or 2 with one line on stderr."""
    # Slow to import: `moontap --help` shall not wait for a server.
    from moontap.standin.__main__ import main

    return main(options.arguments, prog="moontap standin")
