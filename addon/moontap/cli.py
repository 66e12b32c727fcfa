"""The `moontap` command: arguments in, an exit code out. Wiring only.

0 fine, 1 the thing asked about was found wanting, 2 wrong usage or unreadable input; `run` gives
its command's own.
"""

import platform
import sys
from collections.abc import Sequence

from mitmproxy import version

from moontap import __version__
from moontap.commands import (
    UsageError,
    bundle,
    cut,
    demo,
    diff,
    explain,
    lint,
    look,
    pairs,
    path,
    probe,
    proxy,
    replay,
    rules,
    run,
    scrub,
    show,
    standin,
    test,
)
from moontap.commands.options import Parser
from moontap.commands.terminal import stand_in_for_closed

INTERRUPTED = 130

_COMMANDS = (
    *(run, proxy, look),
    *(explain, lint, pairs, show, bundle),
    *(replay, test, cut, scrub, diff, probe),
    *(rules, standin, demo, path),
)
_OF_AN_AGENT = (["run"], ["test"])  # what follows `--` there is the agent's own command line

_EPILOG = """\
example:
  moontap run -- claude              start Claude Code behind a tap that makes its ids unique
  moontap run -- python agent.py     the same for a program with the OpenAI or Anthropic SDK
  moontap explain moontap-captures   what went wrong, who most likely did it, what to try
  moontap pairs moontap-captures     what was called, and which calls lost their result
  moontap look moontap-captures      the same in the browser: a list, and each exchange to read
  moontap replay moontap-captures    serve what was recorded as an API, offline
  moontap demo                       see what it does, with no key and no network
"""


def build_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="moontap",
        description="Records, pairs and repairs the tool calls between an agent and a Kimi model.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"moontap {__version__}, mitmproxy {version.VERSION}, "
        f"Python {platform.python_version()}",
    )
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for module in _COMMANDS:
        module.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit code. Wrong usage ends in SystemExit with code 2, as argparse does.

    arguments: without the program's name; default: the process's own.
    """
    stand_in_for_closed()
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = build_parser()
    # argparse would look for our options in the agent's.
    own, dashes, rest = given, False, list[str]()
    if given[:1] in _OF_AN_AGENT and "--" in given:
        at = given.index("--")
        own, dashes, rest = given[:at], True, given[at + 1 :]
    options, unknown = parser.parse_known_args(own)
    if getattr(options, "passes", False):  # a program of its own, with options of its own
        options.arguments, unknown = unknown, []
    if unknown:  # argparse would say it in the name of the whole program
        command = getattr(options, "execute", None)
        asked = Parser(prog=f"{parser.prog} {command.__name__}") if command else parser
        if given[:1] in _OF_AN_AGENT and not dashes:
            asked.error(f"put -- before the agent's command; not known here: {' '.join(unknown)}")
        asked.error(f"unrecognized arguments: {' '.join(unknown)}")
    if not hasattr(options, "execute"):
        *most, last = [module.__name__.rpartition(".")[2] for module in _COMMANDS]
        parser.error(f"say what to do: {', '.join(most)} or {last}")
    if dashes:
        options.command = [*options.command, "--", *rest] if options.command else rest
    try:
        code: int = options.execute(options)
    except UsageError as error:
        print(f"moontap {given[0]}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
