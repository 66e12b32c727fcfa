"""`moontap path`: where the script is that `mitmdump -s` loads.

Nothing in, a path on stdout out.
"""

import argparse
import sys
from pathlib import Path

from moontap.commands.options import Commands

_PACKAGE = Path(__file__).resolve().parent.parent


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "path",
        help="print the script to give to mitmdump, mitmproxy or mitmweb",
        description="Prints the path of the script that mitmproxy's own tools load.",
        epilog='example:\n  mitmdump -s "$(moontap path)" --set moontap_rewrite=all',
    )
    parser.set_defaults(execute=path)


def path(options: argparse.Namespace) -> int:
    """Print the path; exit code 1 where the script is not there."""
    script = script_path(_PACKAGE)
    if script is None:
        print("moontap path: main.py is missing; install moontap again", file=sys.stderr)
        return 1
    print(script)
    return 0


def script_path(package: Path) -> Path | None:
    """The script that belongs to a package folder.

    A wheel carries it in a folder of its own; only a checkout has it beside the package, where in
    `site-packages` a `main.py` would be somebody else's.
    """
    inside, beside = package / "_script/main.py", package.parent / "main.py"
    return next((script for script in (inside, beside) if script.is_file()), None)
