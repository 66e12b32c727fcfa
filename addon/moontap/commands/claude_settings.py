"""Claude Code's settings files: an address in one of them wins over the environment's.

A command line and an environment in, at most one line about it out. Of a file nothing is told but
the host and path of that address.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from moontap.tapping.upstream import ANTHROPIC, Upstream, UpstreamError, base

PORT = 8799
"""The port of the remedy: it has to be known before the tap listens."""


class Found(NamedTuple):
    """What there is to say, and the command that helps."""

    text: str
    remedy: str


def remedy(given: str | None, path: str) -> str:
    """The command that sends Claude Code through a tap whatever its files say.

    given: the `--upstream` that was given. path: that of the Anthropic base URL. Tried with Claude
    Code 2.1.328: of all settings those of `--settings` win.
    """
    upstream = f" --upstream {shlex.quote(given)}" if given else ""
    url = f"http://127.0.0.1:{PORT}{path}"
    settings = json.dumps({"env": {ANTHROPIC: url}}, separators=(",", ":"))
    return f"moontap run --port {PORT}{upstream} -- claude --settings {shlex.quote(settings)}"


def found(
    command: Sequence[str],
    environment: Mapping[str, str],
    tap: str,
    given: str | None,
    to: Upstream,
) -> Found | None:
    """What keeps a command that is about to start from the tap.

    tap: its URL. given: the `--upstream` that was given; to: what stands behind the tap. None where
    the command is not Claude Code, no file names an address, or all that do name the tap.
    """
    if Path(command[0]).name != "claude":
        return None
    if any(ANTHROPIC in argument for argument in command[1:]):
        return None  # the remedy itself
    for file, path in _files(environment):
        address = _address(path)
        if address is not None and not f"{address}/".startswith(f"{tap}/"):
            return Found(
                f"{file} sets {ANTHROPIC}, and that wins over the tap's address; go around it:",
                remedy(given, to.anthropic) if given else _remedy_for(address, to),
            )
    return None


def _remedy_for(address: str, to: Upstream) -> str:
    """The key of a settings file belongs to the address that stands beside it: it must not go to
    the upstream that moontap takes without one."""
    try:
        named = base(ANTHROPIC, address)
    except UpstreamError:
        return remedy("URL", to.anthropic)
    return remedy(None if named.origin == to.origin else named.origin, named.anthropic)


def _files(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    if config := environment.get("CLAUDE_CONFIG_DIR"):
        user = [("settings.json in CLAUDE_CONFIG_DIR", Path(config) / "settings.json")]
    elif home := environment.get("HOME"):
        user = [("~/.claude/settings.json", Path(home) / ".claude/settings.json")]
    else:
        user = []
    names = (".claude/settings.json", ".claude/settings.local.json")
    return [*user, *((f"./{name}", Path(name)) for name in names)]


def _address(path: Path) -> str | None:
    """The address in a settings file; None where there is none or the file is none."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    env = held.get("env") if isinstance(held, dict) else None
    address = env.get(ANTHROPIC) if isinstance(env, dict) else None
    return address if isinstance(address, str) and address else None
