"""The demo's task, played once through a tap of its own.

A mode, a stand-in and places in, an `Outcome` out. It prints nothing.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moontap.capture.recorder import Counts
from moontap.demo import agent, task
from moontap.standin import Standin, TLSFiles
from moontap.tapping.tap import Settings, tapping
from moontap.tapping.upstream import ANTHROPIC, Upstream, variables

TURNS = 8
HOST = "api.moonshot.cn"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One round of the task, as the agent saw it (turns) and as the tap logged it (lines)."""

    turns: list[agent.Turn]
    counts: Counts
    lines: list[dict[str, Any]]
    capture: Path | None
    seconds: float

    @property
    def done(self) -> bool:
        """Whether the agent came to the right answer."""
        return bool(self.turns) and self.turns[-1].text == task.ANSWER

    @property
    def lost(self) -> int:
        """Calls whose pair the agent dropped."""
        return sum(call.lost for turn in self.turns for call in turn.calls)


def wanting(off: Outcome, on: Outcome) -> list[str]:
    """What the two rounds should have shown and did not; empty where all is as claimed."""
    calls = [call for turn in on.turns for call in turn.calls]
    own = [(call.id, call.tool, call.arguments, call.result) for call in calls]
    logged = [(line["id"], line["tool"], line["arguments"], line["result"]) for line in on.lines]
    claims = {
        "without rewriting the task was done all the same": not off.done,
        "without rewriting no pair was lost": off.lost > 0,
        "the pair log counts other losses than the agent": off.lost == off.counts.unanswered,
        "with rewriting the task was not done": on.done,
        "with rewriting a pair was lost": on.lost == 0 and on.counts.unanswered == 0,
        "with rewriting an id came twice": len({call.id for call in calls}) == len(calls),
        "the pair log is not what the agent did": logged == own,
        "a capture is missing": bool(off.capture and on.capture),
        "records were lost": off.counts.lost + on.counts.lost == 0,
    }
    return [text for text, holds in claims.items() if not holds]


@dataclass(frozen=True, slots=True)
class Stage:
    """What both rounds share. directory: for the captures; confdir: for mitmproxy's own files."""

    standin: Standin
    tls: TLSFiles
    directory: str
    confdir: str


async def play(rewrite: str, stage: Stage, show: Callable[[agent.Turn], None]) -> Outcome:
    """The task once. show: is given each turn as it ends, in another thread."""
    upstream = Upstream(f"https://{HOST}")
    wanted = Settings(
        upstream,
        rewrite,
        directory=stage.directory,
        upstream_ca=str(stage.tls.ca),
        confdir=stage.confdir,
    )
    turns: list[agent.Turn] = []

    def run_agent(base_url: str) -> None:
        for turn in agent.turns(base_url, task.TOOLS, task.QUESTION, TURNS):
            turns.append(turn)
            show(turn)

    started = time.monotonic()
    async with tapping(wanted, _Redirect(stage.standin.port)) as tap:
        recorder = tap.addon.recorder
        recorder.lines = []
        await asyncio.to_thread(run_agent, variables(tap.url, upstream)[ANTHROPIC])
    seconds = time.monotonic() - started
    return Outcome(turns, recorder.counts, recorder.lines, recorder.path, seconds)


class _Redirect:
    """Takes connections meant for HOST to the stand-in; name and certificate checks stay real."""

    def __init__(self, port: int) -> None:
        self._port = port

    def server_connect(self, data: Any) -> None:
        if data.server.address[0] == HOST:
            data.server.address = ("127.0.0.1", self._port)
