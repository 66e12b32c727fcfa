"""What a fixture gives a test: base URLs for its agent, and what came through.

A running server in; URLs and observations out. It starts nothing and asserts nothing.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moontap.report.text import plain
from moontap.tapping.upstream import ANTHROPIC, KIMI, OPENAI, Upstream, parse, variables
from moontap.testing import checks, findings
from moontap.testing.checks import lost
from moontap.testing.sources import logged

if TYPE_CHECKING:
    from mitmproxy import http

    from moontap.replay.server import Asked, Replay
    from moontap.testing.taps import Running, State


class Key(str):
    """A key that a traceback or a failed comparison does not show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<a key>"


MADE_UP = Key("made-up")
"""What an agent may send to a replay: it asks for no key, but the SDKs do."""


class Served:
    """A server on loopback, as agents name it.

    url: `http://127.0.0.1:PORT`. upstream: the same with its paths. api_key: the real one while
    recording, else made up.
    """

    def __init__(self, url: str, upstream: Upstream, api_key: Key = MADE_UP) -> None:
        self.url = url
        self.upstream = Upstream(url, upstream.anthropic, upstream.openai)
        self.api_key = api_key
        self._variables = variables(url, upstream)

    @property
    def anthropic_url(self) -> str:
        """`base_url` for the Anthropic SDK, `ANTHROPIC_BASE_URL` for Claude Code."""
        return self._variables[ANTHROPIC]

    @property
    def openai_url(self) -> str:
        """`base_url` for the OpenAI SDK."""
        return self._variables[OPENAI]

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which agents that are programs of their own are sent here."""
        return {name: self._variables[name] for name in (ANTHROPIC, OPENAI, KIMI)}

    @property
    def recording(self) -> bool:
        """Whether a real server stands behind it."""
        return self.api_key is not MADE_UP

    def close(self) -> None:
        """Stop it; a test need not, its end does."""

    def notes(self) -> list[str]:
        """What to show beside the traceback of a test that failed."""
        return []

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


class Replayed(Served):
    """A recorded session, played. strict: a request that matches nothing fails the test."""

    def __init__(
        self, flow: Path, server: "Replay", stop: Callable[[], None], *, strict: bool
    ) -> None:
        super().__init__(server.base_url, parse(server.base_url))
        self.flow = flow
        self.strict = strict
        self._server, self._stop = server, stop

    @property
    def requests(self) -> "list[Asked]":
        """What was asked, oldest first."""
        return list(self._server.asked)

    @property
    def unmatched(self) -> list[str]:
        """What the agent was told where the recording has no answer."""
        return list(self._server.unmatched)

    @property
    def unserved(self) -> list[str]:
        """The recorded exchanges that nobody asked for."""
        return list(self._server.unserved)

    def close(self) -> None:
        self._stop()

    def notes(self) -> list[str]:
        return [
            plain(f"{self.flow.name}: {_here(text)}") + (f" ({count} times)" if count > 1 else "")
            for text, count in Counter(self.unmatched).items()  # clients ask again
        ]


def _here(text: str) -> str:
    """What a replay says to users of its command, for users of the fixture."""
    text = text.replace("without --once", "with once=False")
    return text.replace("--any-result", "any_result=True")


class Tapped(Served):
    """A tap of its own for the test.

    Its `pairs` are those that have become certain. The end of the run makes all of them so: a call
    that still waits then is `unanswered`. `close` ends it, as do `assert_all_paired` and the like.
    """

    def __init__(self, tap: "Running", upstream: Upstream, api_key: Key = MADE_UP) -> None:
        super().__init__(tap.url, upstream, api_key)
        self._tap = tap

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """The lines of `pairs.jsonl` so far (docs/capture.md names their fields)."""
        folder = self._tap.settle().folder
        return logged(folder, checks.LOG) if folder else []

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What went wrong so far: the lines of `findings.jsonl` (see docs/findings.md)."""
        folder = self._tap.settle().folder
        return logged(folder, findings.LOG) if folder else []

    @property
    def flows(self) -> "list[http.HTTPFlow]":
        """The exchanges that have ended so far, as mitmproxy flows."""
        folder = self._tap.settle().folder
        if folder is None:
            return []
        from moontap.testing.flows import flows

        return flows(folder)

    @property
    def folder(self) -> Path | None:
        """The capture; None before the first exchange."""
        return self._tap.settle().folder

    def close(self) -> None:
        self._tap.close()

    def end(self) -> "State":
        """Close it and say where its capture is."""
        return self._tap.close()

    def notes(self) -> list[str]:
        state = self._tap.close()  # the test has failed: what waits now is lost
        if state.folder is None:
            return ["no request came through the tap", *state.troubles]
        lines = [lost(logged(state.folder, checks.LOG)), f"capture: {plain(str(state.folder))}"]
        return [*state.troubles, *filter(None, lines)]


class Recording(Tapped):
    """A tap before the real server, whose traffic becomes the flow that the test names.

    fronts: the taps that the test has put before it.
    """

    strict = False

    def __init__(
        self, tap: "Running", upstream: Upstream, api_key: Key, flow: Path, rules: str | None
    ) -> None:
        super().__init__(tap, upstream, api_key)
        self.flow = flow
        self.rules = rules
        self.fronts: list[Tapped] = []

    @property
    def requests(self) -> "list[http.Request]":
        """What was asked so far."""
        return [flow.request for flow in self.flows]

    @property
    def unmatched(self) -> list[str]:
        """Nothing: the real server answers."""
        return []

    @property
    def unserved(self) -> list[str]:
        """Nothing."""
        return []
