"""The test that `moontap test` writes into a person's repository.

What is known of a session and of the command in; Python text out. It opens nothing.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIDTH = 100
_PAIRED = ("ok", "error")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the test is about.

    calls: how many the agent must have made for it to be that session again. lost: whether the last
    of these is one that lost its result. model: for Claude Code, whose model the environment names;
    None on Chat Completions.
    """

    calls: int
    lost: bool
    model: str | None


def facts(lines: Sequence[Mapping[str, Any]]) -> Facts:
    """From the pairs of the recorded session."""
    calls = [line for line in lines if line.get("status") != "orphan"]
    lost = next((at for at, line in enumerate(calls, 1) if line["status"] not in _PAIRED), None)
    model = next((line["model"] for line in lines if line["protocol"] == "anthropic-messages"), "")
    return Facts(lost or len(calls), lost is not None, str(model) if model else None)


def source(
    about: Facts,
    flow: Path,
    file: Path,
    folder: Path,
    command: Sequence[str],
    rewrite: str,
    seconds: float,
) -> str:
    """The text of the test file.

    flow, file, folder: absolute; the recorded session, where the text will be, and where the
    command runs. The text names the former two relative to itself where they lie in the folder.
    """
    near = file.is_relative_to(folder)
    named = os.path.relpath(flow, file.parent) if near else str(flow)
    where = f"Path(__file__).parents[{len(file.relative_to(folder).parts) - 1}]" if near else None
    env = f', env={{"ANTHROPIC_MODEL": {_text(about.model)}}}' if about.model else ""
    name = re.sub(r"\W+", "_", flow.stem.lower()).strip("_") or "session"
    count = f", at_least={about.calls}" if about.calls > 1 else ""
    why = f"  # in the recording, call {about.calls} has no result" if about.lost else ""
    return f'''"""{flow.name}, played to the agent again: no tool call may lose its result.

Written by `moontap test`, yours to change. It needs no key and no network.
"""

from pathlib import Path

from moontap.testing import assert_all_paired, run_agent

COMMAND = {_list(command)}
FOLDER = {where or f"Path({_text(str(folder))})"}


def test_{name}(moontap_replay, moontap_tap):
    # any_result: what the tools answer now need not be what they answered then.
    # Not strict: an agent that loses nothing leaves the recorded way, and is refused from there on.
    replay = moontap_replay({_text(named)}, any_result=True, strict=False)
    # "off": ids reach the agent as the server gave them. "all": as behind `moontap run`.
    tap = moontap_tap(replay, rewrite={_text(rewrite)})
    run_agent(COMMAND, tap, cwd=FOLDER, timeout={seconds:g}{env})
    assert_all_paired(tap{count}){why}
'''


def _text(value: str | None) -> str:
    """A Python literal in double quotes, as formatters have it."""
    text = repr(str(value))
    return text if '"' in text else f'"{text[1:-1]}"'


def _list(words: Sequence[str]) -> str:
    line = f"[{', '.join(map(_text, words))}]"
    if len(line) <= WIDTH - len("COMMAND = "):
        return line
    return "[\n" + "".join(f"    {_text(word)},\n" for word in words) + "]"
