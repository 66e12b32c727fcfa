"""`moontap test FLOW -- COMMAND…`: a recorded session as a test of the agent it was recorded from.

A flow file and an agent's command in; a pytest file, where one is asked for, and pytest's verdict
out. The agent runs with its tools, on made-up keys, and without the real API.
"""

import argparse
import fnmatch
import importlib.util
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

from moontap.commands import UsageError, child
from moontap.commands.options import Commands, shown
from moontap.commands.terminal import put

_EXAMPLE = """\
example:
  moontap test tests/flows/loop.flow -- python agent.py
  moontap test tests/flows/loop.flow --write tests/test_loop.py -- python agent.py

The agent's base URLs come in its environment, as in `moontap run`. Exit code 1: the test fails.
"""

_NAMES = ("test_*.py", "*_test.py")
_PLUGIN = "moontap.testing.plugin"


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "test",
        help="run an agent against a saved session, and write that as a pytest test",
        usage="moontap test FLOW [options] -- COMMAND…",
        description="Plays a saved session to COMMAND, and asks that every tool call comes back "
        "with its result.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("flow", metavar="FLOW", help="the saved session: `moontap cut` makes one")
    parser.add_argument(
        "--write", metavar="FILE", help="keep the test as this file; default: try it only"
    )
    parser.add_argument(
        "--rewrite",
        choices=("off", "duplicates", "all"),
        default="off",
        help="which ids the tap makes unique (default: off: the agent must bear them as they are)",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="after which the agent is ended (default: 60)",
    )
    parser.add_argument("command", nargs="*", metavar="COMMAND…", help="the agent")
    parser.set_defaults(execute=test)


def test(options: argparse.Namespace) -> int:
    """Write it, run it; exit code 0 where it passes, 1 where it fails, 2 where it passes on a flow
    file that is damaged. Raises UsageError."""
    command: list[str] = options.command
    if not command:
        raise UsageError("no command given, as in: moontap test loop.flow -- python agent.py")
    try:
        child.check(command[0], os.environ)
    except child.CannotStart as error:
        raise UsageError(str(error)) from None
    if importlib.util.find_spec("pytest") is None:
        raise UsageError(
            f"pytest is not installed for {sys.executable}; install moontap with it where the "
            "agent's tests run: pip install 'moontap[pytest]'"
        )
    with ExitStack() as stack:
        if options.write is not None:
            file = _new(Path(options.write))
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="moontap-"))
            file = Path(folder).resolve() / "test_session.py"
        text, lost = _source(options, file)
        _write(file, text)
        if options.write is not None:
            put(f"moontap test: wrote {shown(file)}\n", sys.stderr)
        return _pytest(file, keep=options.write is not None) or lost


test.__test__ = False  # type: ignore[attr-defined]


def _new(path: Path) -> Path:
    if not any(fnmatch.fnmatch(path.name, pattern) for pattern in _NAMES):
        raise UsageError(f"--write: pytest would not find {path.name}; name it test_….py")
    return path.absolute()


def _source(options: argparse.Namespace, file: Path) -> tuple[str, int]:
    """The text, and an exit code: 2 where not all of the flow file can be read."""
    # Slow to import: mitmproxy.
    from moontap.care.relog import Seen, relog
    from moontap.commands.saved import Saved
    from moontap.testing import written

    flow = Path(options.flow)
    saved = Saved("test", [flow])
    seen = Seen()
    about = written.facts(list(relog(saved, seen)))
    saved.unread(flow, seen.unread)
    if not about.calls:
        raise UsageError(f"{shown(flow)} holds no tool call: there is nothing to ask of an agent")
    text = written.source(
        about,
        flow.absolute(),
        file,
        Path.cwd(),
        options.command,
        options.rewrite,
        options.timeout,
    )
    return text, saved.close()


def _write(file: Path, text: str) -> None:
    """Raises UsageError; a file that is there is a person's, unless it says the same."""
    try:
        if file.exists() and file.read_text("utf-8") != text:
            raise UsageError(f"--write: {shown(file)} is there already; delete it, or run pytest")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--write: {shown(file)}: {error}") from None


def _pytest(file: Path, *, keep: bool) -> int:
    command = [sys.executable, "-m", "pytest", str(file)]
    if not any(one.value == _PLUGIN for one in metadata.entry_points(group="pytest11")):
        command += ["-p", _PLUGIN]
    if not keep:
        command += ["-p", "no:cacheprovider"]
    code = subprocess.run(command, check=False).returncode
    # pytest's own: 0 passed, 1 failed, above: it could not run the test.
    return code if code in (0, 1) else 2


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds
