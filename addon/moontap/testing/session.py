"""The servers of a pytest process and of one test in it.

Flows, URLs and settings in; servers that run out, stopped in reverse order when the test ends.
"""

import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from moontap.report.text import many, plain
from moontap.tapping.upstream import Upstream, parse
from moontap.testing.background import Background
from moontap.testing.keys import Access
from moontap.testing.places import Places
from moontap.testing.served import MADE_UP, Recording, Replayed, Served, Tapped
from moontap.testing.taps import Running, Taps

type Rules = str | Path | None
"""The path of a rules file."""


class Session:
    """What all tests of a process share: a thread for replays, child processes for taps."""

    def __init__(self) -> None:
        self.background = Background()
        self.taps = Taps()

    def close(self) -> None:
        """End both."""
        self.taps.close()
        self.background.close()


class Test:
    """The servers of one test, and what is to be said about them.

    folder: for captures. passed: set by the plugin once its body has ended well.
    """

    __test__ = False

    def __init__(
        self, session: Session, places: Places, folder: Path, node: str, access: Access | None
    ) -> None:
        self._session, self._places = session, places
        self._folder, self._node = folder, node
        self._access = access
        self._opened: list[Served] = []
        self.passed = False

    def replay(
        self,
        flow: str | Path,
        *,
        pace: str | float = "none",
        once: bool = True,
        any_result: bool = False,
        rules: Rules = None,
        strict: bool = True,
    ) -> Replayed | Recording:
        """`moontap_replay`: play a recorded session; with `--moontap-record`, record it.

        flow: a flow file, or a folder of them. pace: `none`, `original`, or a factor. once: each
        recorded answer is given once. any_result: what the tools answer may be another thing than
        it was then. rules: what else of a request does not count. strict: a request that matches
        nothing fails the test.
        Raises FileNotFoundError, RulesError, Unreadable.
        """
        if self._access:
            return self._record(Path(flow), self._access, rules)
        path = self._places.find(Path(flow), self._node)
        from moontap.testing.replays import player

        playing = player(path, pace, once, any_result, _text(rules))
        server, stop = self._session.background.enter(playing)
        for damaged, loss in server.library.losses.items():
            warnings.warn(f"{damaged}: left out {loss}", stacklevel=2)
        replayed = Replayed(path, server, stop, strict=strict)
        self._opened.append(replayed)
        return replayed

    def tap(
        self,
        upstream: Any,
        *,
        rewrite: str = "all",
        id_style: str = "auto",
        rules: Rules = None,
    ) -> Tapped:
        """`moontap_tap`: put a tap before a server.

        upstream: a replay, another tap, a stand-in, or a URL. The rest as for `moontap run`.
        Raises TapError, UpstreamError.
        """
        key = upstream.api_key if isinstance(upstream, Served) else MADE_UP
        server = upstream.upstream if isinstance(upstream, Served) else parse(_url(upstream))
        tapped = Tapped(self._tap(server, rewrite, id_style, rules), server, key)
        self._opened.append(tapped)
        if isinstance(upstream, Recording):
            upstream.fronts.append(tapped)
        return tapped

    def _record(self, flow: Path, access: Access, rules: Rules) -> Recording:
        path = self._places.new(flow)
        running = self._tap(access.upstream, "off", "auto", rules)
        recording = Recording(running, access.upstream, access.key, path, _text(rules))
        self._opened.append(recording)
        return recording

    def _tap(self, upstream: Upstream, rewrite: str, id_style: str, rules: Rules) -> Running:
        return self._session.taps.start(
            upstream.origin,
            self._folder / f"tap-{len(self._opened) + 1}",
            rewrite=rewrite,
            id_style=id_style,
            rules=_text(rules),
        )

    def unmatched(self) -> str:
        """What strict replays could not answer; empty where there is nothing."""
        notes = [
            note
            for one in self._opened
            if isinstance(one, Replayed) and one.strict
            for note in one.notes()
        ]
        return "\n\n".join(notes)

    def notes(self, said: str) -> str:
        """What helps to understand a failure, beyond what it says itself."""
        notes: list[str] = []
        for one in self._opened:
            with suppress(Exception):  # they stand beside the failure, never in its place
                notes += [note for note in one.notes() if note not in said]
        return "\n".join(notes)

    def close(self) -> list[str]:
        """Stop the servers and keep what was recorded; what there is to say about that."""
        said: list[str] = []
        errors: list[Exception] = []
        for one in reversed(self._opened):
            try:
                one.close()
                if isinstance(one, Recording):
                    said.append(self._keep(one))
            except Exception as error:
                errors.append(error)
        self._opened.clear()
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup("moontap", errors)
        return said

    def _keep(self, recording: Recording) -> str:
        shown = plain(os.path.relpath(recording.flow))
        if not self.passed:
            return f"not recorded, as the test did not pass: {shown}"
        from moontap.testing.records import keep

        fronts = [tap.end().folder for tap in recording.fronts]
        count = keep(recording.end().folder, fronts, recording.flow, recording.rules)
        if not count:
            return f"not recorded, as no request came: {shown}"
        return f"recorded, without secrets: {shown} ({many(count, 'exchange')})"


def _text(rules: Rules) -> str | None:
    """Absolute: a tap's process may have been started in another folder."""
    return None if rules is None else str(Path(rules).absolute())


def _url(upstream: Any) -> str:
    """A URL, or what has one: the stand-in of `moontap.standin`, say."""
    for name in ("url", "base_url"):
        if isinstance(url := getattr(upstream, name, None), str):
            return url
    return str(upstream)


def folders(root: Path, names: Sequence[str | Path]) -> tuple[Path, ...]:
    """Folders that a marker names, relative to rootdir."""
    return tuple(root / name for name in names)
